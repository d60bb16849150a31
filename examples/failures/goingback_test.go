package failures_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
	"github.com/outboxgen/outboxgen/internal/testenv/postgresenv"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// In the tests of this file the database goes back in time while a relay runs.

// forgetful is the configuration of a server that keeps asynchronously committed changes in memory
// for long.
var forgetful = postgresenv.Config{Durable: true, Settings: map[string]string{
	"wal_writer_delay": "10s", "wal_writer_flush_after": "1GB", "wal_level": "minimal",
	"max_wal_senders": "0",
}}

// forgetfulWorld returns a database on a server of the test's own, which loses asynchronously
// committed changes in a crash.
func forgetfulWorld(t *testing.T) *world {
	t.Helper()
	server, err := postgresenv.Start(t.Context(), forgetful)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	if !server.Own() {
		t.Skip("a server that is not the test's own is not crashed")
	}
	db, err := server.CreateDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := worldAt(t, db.URL)
	w.exec(`CREATE UNLOGGED TABLE before_crash (n integer)`)
	return w
}

// crash ends a session of the server by SIGKILL, as the kernel does when memory is short. The
// server then ends all other sessions and recovers; crash returns once it has.
func (w *world) crash() {
	w.Helper()
	ctx := w.Context()
	w.exec(`INSERT INTO before_crash VALUES (1)`)
	if _, err := w.pool.Exec(ctx, `COPY (SELECT 1) TO PROGRAM 'kill -9 $PPID'`); err == nil {
		w.Fatal("the session goes on")
	}
	w.eventually("the server has recovered", func() bool {
		var left int
		err := w.pool.QueryRow(ctx, `SELECT count(*) FROM before_crash`).Scan(&left)
		return err == nil && left == 0
	})
}

// gated is a publisher that publishes while its gate is open.
type gated struct {
	next   outbox.Publisher
	mu     sync.Mutex
	closed chan struct{} // nil: open
}

func (g *gated) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = make(chan struct{})
}

func (g *gated) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.closed)
	g.closed = nil
}

func (g *gated) Publish(ctx context.Context, m *outbox.Message) error {
	g.mu.Lock()
	closed := g.closed
	g.mu.Unlock()
	if closed != nil {
		select {
		case <-closed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return g.next.Publish(ctx, m)
}

// unhurried returns a relay's configuration with which neither a lease nor an attempt times out
// during a test.
func unhurried() outbox.Config {
	c := quick()
	c.Lease, c.PublishTimeout = 4*patience, 2*patience
	c.MinRetryDelay, c.MaxRetryDelay = time.Hour, time.Hour
	return c
}

func TestWhatACrashUndidIsPublishedAgain(t *testing.T) {
	t.Parallel()
	w := forgetfulWorld(t)
	recording := &outboxtest.RecordingPublisher{}
	var refused sync.Map
	gate := &gated{next: &outboxtest.FaultyPublisher{Next: recording,
		Decide: func(m *outbox.Message) outboxtest.Fault {
			if _, before := refused.LoadOrStore(m.ID, true); !before &&
				(m.Key == "" || strings.HasPrefix(m.Key, "held")) {
				return outboxtest.Refuse
			}
			return outboxtest.Deliver
		}}}
	relay, stop := w.run(w.store, gate, unhurried())
	w.eventually("it owns all shards", func() bool { return relay.Stats().Shards == 16 })
	// The server writes to the disk at times all the same, so a crash may undo nothing.
	for cameBack, n := 0, 0; cameBack == 0; n++ {
		before := relay.Stats()
		list := []events.Event{events.StrayHappenedV1{Entity: "refused", N: int64(n)}}
		for i := range 50 {
			list = append(list, thing(fmt.Sprint("key ", n, i%10), i))
		}
		list = append(list, thing(fmt.Sprint("held ", n), 1), thing(fmt.Sprint("held ", n), 2))
		w.enqueue(list...)
		w.eventually("all is settled or put off", func() bool {
			s := relay.Stats()
			return s.Published == before.Published+50 && s.Retried == before.Retried+2
		})
		gate.close()
		w.crash()
		cameBack = w.pending() - 3*(n+1)
		if cameBack > 0 && query[int](w, `SELECT count(*) FROM outbox WHERE attempts > 0`) > 0 {
			cameBack = 0
		}
		gate.open()
		if n == 5 {
			t.Fatal("after six crashes nothing has come back")
		}
		t.Logf("crash %d: %d events came back", n+1, cameBack)
	}
	w.eventually("everything that has come back is settled, refusals among it", func() bool {
		return query[int](w, `SELECT count(*) FROM outbox WHERE attempts = 0`) == 0
	})
	w.exec(`UPDATE outbox SET available_at = now()`) // for refusals that the crash did not undo
	w.eventually("the others too", func() bool { return w.pending() == 0 })
	stop()
	w.equal("dead letters", query[int](w, `SELECT count(*) FROM outbox_dead`), 0)
	w.orderedFirst(recording.Messages())
}

// orderedFirst fails the test unless the first publishes of each key's events were in order.
func (w *world) orderedFirst(messages []outbox.Message) {
	w.Helper()
	seen := map[outbox.ID]bool{}
	last := map[string]int64{}
	for i := range messages {
		m := &messages[i]
		if seen[m.ID] || m.Key == "" {
			continue
		}
		seen[m.ID] = true
		n := number(m)
		if before, any := last[m.Key]; any && n <= before {
			w.Errorf("the events of a key were published out of order: %d after %d", n, before)
		}
		last[m.Key] = n
	}
}

// TestCrashesOfTheDatabaseCostNoAttempts crashes the server repeatedly while events are in flight.
func TestCrashesOfTheDatabaseCostNoAttempts(t *testing.T) {
	t.Parallel()
	w := forgetfulWorld(t)
	w.exec(`CREATE TABLE truth (id uuid)`)
	recording := &outboxtest.RecordingPublisher{}
	gate := &gated{next: recording}
	var stores [2]*counting
	for i := range stores {
		c := unhurried()
		c.MaxAttempts = 1
		stores[i] = &counting{Store: events.NewStore(connect(t, w.url))}
		w.run(stores[i], gate, c)
	}
	stop := make(chan struct{})
	var producer sync.WaitGroup
	producer.Go(func() { w.produce(connect(t, w.url), stop) })
	for range 4 {
		before := len(recording.Messages())
		w.eventually("events are published",
			func() bool { return len(recording.Messages()) > before+20 })
		gate.close()
		w.crash()
		gate.open()
	}
	close(stop)
	producer.Wait()
	w.eventually("all is settled", func() bool { return w.pending() == 0 })
	w.equal("dead letters", query[int](w, `SELECT count(*) FROM outbox_dead`), 0)
	for _, store := range stores {
		w.equal("attempts charged", store.charged.Load(), 0)
	}
	w.allPublished(recording.Messages())
}

// allPublished fails the test unless all events in the table truth were published.
func (w *world) allPublished(messages []outbox.Message) {
	w.Helper()
	published := map[string]bool{}
	for _, m := range messages {
		published[m.ID.String()] = true
	}
	rows, err := w.pool.Query(w.Context(), `SELECT id::text FROM truth`)
	w.must(err)
	committed, err := pgx.CollectRows(rows, pgx.RowTo[string])
	w.must(err)
	if len(committed) == 0 {
		w.Error("no event was committed")
	}
	for _, id := range committed {
		if !published[id] {
			w.Errorf("event %s was committed and never published", id)
		}
	}
}

// TestAStandbyThatLagsIsPromoted has a relay continue on a database that lacks the latest changes
// and assigns the same numbers again.
func TestAStandbyThatLagsIsPromoted(t *testing.T) {
	t.Parallel()
	primary, standby, err := postgresenv.StartPair(t.Context(), postgresenv.Config{})
	if errors.Is(err, postgresenv.ErrNotPrivate) {
		t.Skip(err) // in a container
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = primary.Stop(), standby.Stop() })
	db, err := primary.CreateDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := worldAt(t, db.URL)
	w.exec(`CREATE TABLE truth (id uuid)`)
	way := w.gateway(db.URL)
	recording := &outboxtest.RecordingPublisher{}
	gate := &gated{next: recording}
	relay, _ := w.run(events.NewStore(connect(t, way.url)), gate, unhurried())
	w.eventually("it owns all shards", func() bool { return relay.Stats().Shards == 16 })
	w.enqueueTruth(20)
	w.eventually("all is settled", func() bool { return w.pending() == 0 })

	copied := &world{T: t, url: standby.URLOf(db), pool: connect(t, standby.URLOf(db))}
	copied.eventually("the standby has followed", func() bool {
		var n int
		err := copied.pool.QueryRow(t.Context(), `SELECT count(*) FROM truth`).Scan(&n)
		return err == nil && n == 20 && copied.pending() == 0
	})
	copied.exec(`ALTER SYSTEM RESET primary_conninfo`)
	copied.exec(`SELECT pg_reload_conf()`)
	copied.eventually("the standby follows no longer", func() bool {
		return query[int](copied, `SELECT count(*) FROM pg_stat_wal_receiver`) == 0
	})
	w.enqueueTruth(300) // beyond the numbers that the sequence has logged in advance
	w.eventually("all of that is settled", func() bool { return relay.Stats().Published == 320 })
	gate.close()
	w.enqueueTruth(10) // these are in flight
	w.eventually("the relay has it in memory", func() bool { return relay.Stats().InFlight == 10 })
	reached := query[int64](w, `SELECT last_value FROM outbox_seq`)

	w.must(primary.Kill())
	copied.exec(`SELECT pg_promote()`)
	way.lead(standby.URLOf(db))
	copied.store = events.NewStore(copied.pool)
	copied.enqueueTruth(100) // with numbers that were assigned before
	if now := query[int64](copied, `SELECT last_value FROM outbox_seq`); now >= reached {
		t.Fatalf("the sequence is at %d and was at %d: nothing has gone back", now, reached)
	}
	gate.open()
	copied.eventually("all that the new primary holds is settled",
		func() bool { return copied.pending() == 0 })
	copied.enqueueTruth(500)
	copied.eventually("and what follows", func() bool { return copied.pending() == 0 })
	copied.allPublished(recording.Messages())
}

// enqueueTruth commits n events, and records them in the table truth.
func (w *world) enqueueTruth(n int) {
	w.Helper()
	list := make([]events.Event, n)
	for i := range list {
		list[i] = thing(fmt.Sprint("key ", i%7), i)
	}
	tx := w.begin()
	ids, err := w.store.Enqueue(w.Context(), tx, list...)
	w.must(err)
	for _, id := range ids {
		_, err := tx.Exec(w.Context(), `INSERT INTO truth VALUES ($1)`, id.String())
		w.must(err)
	}
	w.must(tx.Commit(w.Context()))
}

// TestABackupIsRestoredUnderARelay shows that the events of the backup are published, and so are
// new events that have the numbers of others which the relay has in memory.
func TestABackupIsRestoredUnderARelay(t *testing.T) {
	t.Parallel()
	const truncated = `TRUNCATE outbox; INSERT INTO outbox OVERRIDING SYSTEM VALUE SELECT *
		FROM backup;`
	for name, restore := range map[string]func(w *world, relay *outbox.Relay, seq int64){
		"the rows are replaced": func(w *world, _ *outbox.Relay, seq int64) {
			w.script(truncated + setval(seq))
		},
		"the table is made anew": func(w *world, _ *outbox.Relay, _ int64) {
			w.script(`TRUNCATE outbox RESTART IDENTITY`)
		},
		"the sequence alone is set back": func(w *world, relay *outbox.Relay, seq int64) {
			w.script(`DELETE FROM outbox;` + setval(seq))
			// If the sequence had caught up at once, only the relay's next pass from the beginning
			// would find events with an old number.
			w.eventually("the relay has noticed",
				func() bool { return relay.Stats().Shards == 0 || relay.Stats().InFlight == 0 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.exec(`CREATE TABLE truth (id uuid)`)
			w.enqueueTruth(30)
			w.exec(`CREATE TABLE backup AS TABLE outbox`)
			seq := query[int64](w, `SELECT last_value FROM outbox_seq`)
			recording := &outboxtest.RecordingPublisher{}
			gate := &gated{next: recording}
			relay, _ := w.run(w.store, gate, unhurried())
			w.enqueueTruth(100)
			w.eventually("all is settled", func() bool { return w.pending() == 0 })
			gate.close()
			w.enqueueTruth(40)
			w.eventually("the relay has it in memory",
				func() bool { return relay.Stats().InFlight == 40 })
			w.exec(`TRUNCATE truth`)
			restore(w, relay, seq)
			w.enqueueTruth(200)
			gate.open()
			w.eventually("all is settled again", func() bool { return w.pending() == 0 })
			w.allPublished(recording.Messages())
		})
	}
}

func setval(seq int64) string { return fmt.Sprintf(`SELECT setval('outbox_seq', %d);`, seq) }

// script runs statements in one transaction.
func (w *world) script(sql string) {
	w.Helper()
	_, err := w.pool.Exec(w.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	w.must(err)
}

// TestARestartOfTheServerLosesNothing stops the server cleanly while events are in flight.
func TestARestartOfTheServerLosesNothing(t *testing.T) {
	t.Parallel()
	server, err := postgresenv.Start(t.Context(), postgresenv.Config{Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	db, err := server.CreateDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := worldAt(t, db.URL)
	w.exec(`CREATE TABLE truth (id uuid)`)
	recording := &outboxtest.RecordingPublisher{}
	gate := &gated{next: recording}
	relay, _ := w.run(events.NewStore(connect(t, w.url,
		func(c *pgxpool.Config) { c.MinConns = 2 })), gate, unhurried())
	w.enqueueTruth(50)
	w.eventually("all is settled", func() bool { return w.pending() == 0 })
	gate.close()
	w.enqueueTruth(50)
	w.eventually("the relay has them in memory",
		func() bool { return relay.Stats().InFlight == 50 })
	if err := server.Restart(t.Context()); errors.Is(err, postgresenv.ErrNotPrivate) {
		t.Skip(err) // in a container
	} else if err != nil {
		t.Fatal(err)
	}
	gate.open()
	w.eventually("the server answers, and all is settled", func() bool {
		var n int
		return w.pool.QueryRow(t.Context(), `SELECT count(*) FROM outbox`).Scan(&n) == nil && n == 0
	})
	w.enqueueTruth(50)
	w.eventually("all is settled", func() bool { return w.pending() == 0 })
	w.allPublished(recording.Messages())
}
