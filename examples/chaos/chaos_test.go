//go:build unix

// Package chaos kills the processes of a whole installation at random, stops its broker, ends
// sessions of its database and crashes the database. Then it counts: nothing may be lost, and no
// effect may have happened twice.
package chaos_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
	"github.com/outboxgen/outboxgen/examples/internal/migrate"
	"github.com/outboxgen/outboxgen/internal/testenv/natsenv"
	"github.com/outboxgen/outboxgen/internal/testenv/postgresenv"
)

const (
	stream   = "THINGS"
	durable  = "witness"
	patience = 5 * time.Minute // the time limit of a test that hangs
)

// world is the installation under test.
type world struct {
	*testing.T
	random    *rand.Rand
	pool      *pgxpool.Pool // the test's own, whose sessions are never ended
	producers *pgxpool.Pool
	broker    *natsenv.Server
	js        jetstream.JetStream
	relays    []*process
	consumers []*process
	resumed   sync.WaitGroup

	committed, rolledBack, lost              atomic.Int64 // transactions
	kills, stalls, terminations, outages     int
	crashes                                  int // of the database
	mayCrash                                 bool
	duplicates                               atomic.Int64
	eventCount, published, publishedDistinct int
}

func TestKillingProcesses(t *testing.T) {
	d := time.Minute
	if testing.Short() {
		d = 15 * time.Second
	}
	w := newWorld(t)
	ctx, stop := context.WithCancel(t.Context())
	var producing sync.WaitGroup
	store := events.NewStore(w.producers)
	for range 8 {
		p := &producer{pool: w.producers, store: store,
			random:    rand.New(rand.NewPCG(w.random.Uint64(), 0)),
			committed: &w.committed, rolledBack: &w.rolledBack, lost: &w.lost}
		producing.Go(func() { p.run(ctx) })
	}
	w.wreak(time.Now().Add(d))
	stop()
	producing.Wait()
	w.settle()
	w.checkEffects()
	w.checkStream()
	t.Logf("%d transactions committed, %d rolled back, %d cut off; %d kills, %d stalls, %d "+
		"terminated sessions, %d outages of the broker, %d crashes of the database",
		w.committed.Load(), w.rolledBack.Load(), w.lost.Load(), w.kills, w.stalls, w.terminations,
		w.outages, w.crashes)
	t.Logf("%d events enqueued, and %d caused by them; %d messages published, %d of them again; "+
		"%d duplicates refused by the inbox",
		w.eventCount, w.publishedDistinct-w.eventCount, w.published,
		w.published-w.publishedDistinct, w.duplicates.Load())
}

func newWorld(t *testing.T) *world {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	// The server writes asynchronously committed changes to the disk late.
	server, err := postgresenv.Start(t.Context(),
		postgresenv.Config{Durable: true, Settings: map[string]string{"wal_writer_delay": "10s"}})
	must(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	db, err := server.CreateDatabase(t.Context())
	must(t, err)
	url := db.URL
	w := &world{T: t, random: rand.New(rand.NewPCG(seed, 0)), broker: natsenv.New(t),
		mayCrash: server.Own()}
	w.pool = connect(t, url, "chaos test")
	w.producers = connect(t, url, "chaos producer")
	must(t, migrate.Plain(t.Context(), w.pool, os.DirFS("../conformance/plain/migrations")))
	_, err = w.pool.Exec(t.Context(), schema)
	must(t, err)
	w.openBroker()
	env := []string{envPostgres + "=" + url, envNATS + "=" + w.broker.URL()}
	for range 3 {
		w.relays = append(w.relays, &process{role: "relay", env: env, duplicates: &w.duplicates})
	}
	for range 2 {
		w.consumers = append(w.consumers,
			&process{role: "consumer", env: env, duplicates: &w.duplicates})
	}
	for _, p := range w.processes() {
		p.start(t)
	}
	t.Cleanup(func() {
		for _, p := range w.processes() {
			_ = p.cmd.Process.Kill()
		}
	})
	return w
}

func (w *world) processes() []*process {
	return append(w.relays[:len(w.relays):len(w.relays)], w.consumers...)
}

func connect(t *testing.T, url, name string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	must(t, err)
	config.ConnConfig.RuntimeParams["application_name"] = name
	config.MaxConns = 8
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// openBroker creates a stream that drops hardly any duplicates, so that the inbox has to.
func (w *world) openBroker() {
	nc, err := nats.Connect(w.broker.URL(), nats.MaxReconnects(-1),
		nats.ReconnectWait(50*time.Millisecond))
	must(w.T, err)
	w.Cleanup(nc.Close)
	w.js, err = jetstream.New(nc)
	must(w.T, err)
	_, err = w.js.CreateStream(w.Context(), jetstream.StreamConfig{
		Name: stream, Subjects: []string{"things"}, Duplicates: 100 * time.Millisecond,
	})
	must(w.T, err)
	_, err = w.js.CreateConsumer(w.Context(), stream, jetstream.ConsumerConfig{
		Durable: durable, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: 2 * time.Second, MaxAckPending: 1000,
	})
	must(w.T, err)
}

// wreak breaks one thing after the other until the deadline, and then starts everything again.
func (w *world) wreak(deadline time.Time) {
	for time.Now().Before(deadline) {
		pause(w.Context(), time.Duration(50+w.random.IntN(300))*time.Millisecond)
		switch n := w.random.IntN(22); {
		case n < 8:
			w.kill(w.relays[w.random.IntN(len(w.relays))])
		case n < 12:
			w.kill(w.consumers[w.random.IntN(len(w.consumers))])
		case n < 14:
			w.stalls++
			w.relays[w.random.IntN(len(w.relays))].stall(w.T, &w.resumed)
		case n < 19:
			w.terminate()
		case n < 21:
			w.crash()
		default:
			w.outages++
			w.broker.Stop()
			pause(w.Context(), time.Duration(w.random.IntN(1500))*time.Millisecond)
			must(w.T, w.broker.Restart())
		}
	}
	w.resumed.Wait()
}

func (w *world) kill(p *process) {
	w.kills++
	p.kill(w.T)
	p.start(w.T)
}

func (w *world) terminate() {
	tag, err := w.pool.Exec(w.Context(), `SELECT pg_terminate_backend(pid) FROM (
			SELECT pid FROM pg_stat_activity
			WHERE datname = current_database() AND application_name <> 'chaos test'
			ORDER BY random() LIMIT 1
		) AS victim`)
	must(w.T, err)
	w.terminations += int(tag.RowsAffected())
}

// crash ends a session of the database by SIGKILL, as the kernel does when memory is short. The
// server then ends all other sessions and recovers, without what was committed asynchronously just
// before.
func (w *world) crash() {
	if !w.mayCrash {
		return
	}
	w.crashes++
	_, err := w.pool.Exec(w.Context(), `INSERT INTO before_crash VALUES (1)`)
	must(w.T, err)
	if _, err := w.pool.Exec(w.Context(), `COPY (SELECT 1)
		TO PROGRAM 'kill -9 $PPID'`); err == nil {
		w.Fatal("the session goes on")
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		var left int
		err := w.pool.QueryRow(w.Context(), `SELECT count(*) FROM before_crash`).Scan(&left)
		if err == nil && left == 0 {
			w.pool.Reset() // its other connections have ended as well
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("the database does not come back: %v", err)
		}
	}
}

// settle waits until no event is under way, and then ends all processes.
func (w *world) settle() {
	began := time.Now()
	idle := 0
	w.eventually("everything is published, delivered and applied", func() bool {
		if w.moving() {
			idle = 0
			return false
		}
		idle++
		return idle > 3
	})
	w.Logf("settled after %v", time.Since(began).Round(time.Millisecond))
	for _, p := range w.processes() {
		p.stop(w.T)
	}
}

func (w *world) moving() bool {
	if w.count(`SELECT count(*) FROM outbox`) > 0 {
		return true
	}
	c, err := w.js.Consumer(w.Context(), stream, durable)
	must(w.T, err)
	info, err := c.Info(w.Context())
	must(w.T, err)
	return info.NumPending > 0 || info.NumAckPending > 0
}

func (w *world) eventually(what string, condition func() bool) {
	w.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !condition(); <-tick.C {
		if time.Now().After(deadline) {
			w.Fatalf("not within %v: %s; %d events are in the outbox", patience, what,
				w.count(`SELECT count(*) FROM outbox`))
		}
	}
}

func (w *world) count(sql string) (n int) {
	w.Helper()
	must(w.T, w.pool.QueryRow(w.Context(), sql).Scan(&n))
	return n
}

// checkEffects compares the committed events with their effects.
func (w *world) checkEffects() {
	w.Helper()
	for what, sql := range map[string]string{
		"committed events without effect": `SELECT count(*) FROM truth t WHERE entity <> ''
			AND NOT EXISTS (SELECT FROM effect e WHERE e.event_id = t.event_id)`,
		"effects of what never happened": `SELECT count(*) FROM effect e
			WHERE NOT EXISTS (SELECT FROM truth t WHERE t.event_id = e.event_id)`,
		"effects that happened twice": `SELECT count(*) - count(DISTINCT event_id) FROM effect`,
		"events in the outbox":        `SELECT count(*) FROM outbox`,
		"dead letters":                `SELECT count(*) FROM outbox_dead`,
		"aggregates whose history has gaps": `SELECT count(*) FROM entity e
			WHERE n <> (SELECT count(*) FROM truth t WHERE t.entity = e.entity)`,
	} {
		if n := w.count(sql); n != 0 {
			w.Errorf("%s: %d", what, n)
		}
	}
	w.eventCount = w.count(`SELECT count(*) FROM truth`)
	if w.eventCount == 0 {
		w.Error("no event was enqueued")
	}
}

// checkStream reads every message that was ever published.
func (w *world) checkStream() {
	w.Helper()
	first, caused := map[uuid.UUID]bool{}, map[uuid.UUID]int{}
	last := map[string]int64{}
	for _, msg := range w.messages() {
		w.published++
		id := uuid.MustParse(msg.Headers().Get("ce-id"))
		if first[id] {
			continue
		}
		first[id] = true
		if cause := msg.Headers().Get("ce-causationid"); cause != "" {
			caused[uuid.MustParse(cause)]++
		}
		if key := msg.Headers().Get("ce-partitionkey"); key != "" {
			w.checkOrder(msg.Data(), last)
		}
	}
	w.publishedDistinct = len(first)
	rows, err := w.pool.Query(w.Context(), `SELECT event_id, entity FROM truth`)
	must(w.T, err)
	defer rows.Close()
	for rows.Next() {
		var id uuid.UUID
		var entity string
		must(w.T, rows.Scan(&id, &entity))
		if !first[id] {
			w.Errorf("event %s was committed and never published", id)
		}
		if want := map[bool]int{true: 1}[entity != ""]; caused[id] != want {
			w.Errorf("event %s caused %d events, want %d", id, caused[id], want)
		}
		delete(caused, id)
	}
	must(w.T, rows.Err())
	if len(caused) > 0 {
		w.Errorf("%d events were caused by what never happened", len(caused))
	}
}

// checkOrder fails the test unless an event's first publish comes after that of its predecessor.
func (w *world) checkOrder(body []byte, last map[string]int64) {
	w.Helper()
	var e events.ThingHappenedV1
	must(w.T, json.Unmarshal(body, &e))
	if e.N != last[e.Entity]+1 {
		w.Errorf("%s: %d was published after %d", e.Entity, e.N, last[e.Entity])
	}
	last[e.Entity] = e.N
}

func (w *world) messages() (all []jetstream.Msg) {
	w.Helper()
	c, err := w.js.OrderedConsumer(w.Context(), stream, jetstream.OrderedConsumerConfig{})
	must(w.T, err)
	s, err := w.js.Stream(w.Context(), stream)
	must(w.T, err)
	info, err := s.Info(w.Context())
	must(w.T, err)
	for len(all) < int(info.State.Msgs) {
		batch, err := c.Fetch(min(1000, int(info.State.Msgs)-len(all)),
			jetstream.FetchMaxWait(patience))
		must(w.T, err)
		for msg := range batch.Messages() {
			all = append(all, msg)
		}
		must(w.T, batch.Error())
	}
	return all
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
