// Package failures shows that problems which users of outbox, inbox and queue tables have reported
// cannot happen here, or are handled: there is a test for each, on a real server. docs/failures.md
// lists them all.
package failures_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
	prefixed "github.com/outboxgen/outboxgen/examples/conformance/prefixed/events"
	"github.com/outboxgen/outboxgen/examples/internal/migrate"
	"github.com/outboxgen/outboxgen/internal/testenv/postgresenv"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// patience is the time limit of tests that hang. It measures nothing: on a busy machine, what has
// to happen may take long.
const patience = 3 * time.Minute

// world is a database of the test's own with the tables of the catalogue plain.
type world struct {
	*testing.T
	url   string
	pool  *pgxpool.Pool
	store *events.Store
	reads *counting // what the relay reads, if the test is simulated
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return worldAt(t, postgresenv.New(t).URL)
}

// worldAt applies the migrations to an empty database.
func worldAt(t *testing.T, url string) *world {
	t.Helper()
	w := &world{T: t, url: url, pool: connect(t, url)}
	w.must(migrate.Plain(t.Context(), w.pool, os.DirFS("../conformance/plain/migrations")))
	w.store = events.NewStore(w.pool)
	return w
}

// retaining returns a database of the test's own with the tables of the catalogue prefixed, which
// retains published events.
func retaining(t *testing.T) (*world, *prefixed.Store) {
	t.Helper()
	w := &world{T: t, url: postgresenv.New(t).URL}
	w.pool = connect(t, w.url)
	w.must(migrate.Goose(t.Context(), w.pool, os.DirFS("../conformance/prefixed/migrations")))
	return w, prefixed.NewStore(w.pool)
}

func connect(t *testing.T, url string, changes ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 12
	for _, change := range changes {
		change(config)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) equal(what string, got, want any) {
	w.Helper()
	if g, x := fmt.Sprint(got), fmt.Sprint(want); g != x {
		w.Fatalf("%s: got %s, want %s", what, g, x)
	}
}

// eventually waits until condition holds.
func (w *world) eventually(what string, condition func() bool) {
	w.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !condition(); <-tick.C {
		if time.Now().After(deadline) {
			w.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func (w *world) exec(sql string, args ...any) {
	w.Helper()
	_, err := w.pool.Exec(w.Context(), sql, args...)
	w.must(err)
}

// query returns the one value that a statement selects.
func query[T any](w *world, sql string, args ...any) (value T) {
	w.Helper()
	w.must(w.pool.QueryRow(w.Context(), sql, args...).Scan(&value))
	return value
}

// begin begins a transaction that is rolled back at the end of the test if it is still open.
func (w *world) begin() pgx.Tx {
	w.Helper()
	tx, err := w.pool.Begin(w.Context())
	w.must(err)
	w.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(w.Context())) })
	return tx
}

// thing returns an event with a key.
func thing(key string, n int) events.Event {
	return events.ThingHappenedV1{Entity: key, N: int64(n)}
}

// enqueue commits events in one transaction.
func (w *world) enqueue(list ...events.Event) []outbox.ID {
	w.Helper()
	tx := w.begin()
	ids, err := w.store.Enqueue(w.Context(), tx, list...)
	w.must(err)
	w.must(tx.Commit(w.Context()))
	return ids
}

func (w *world) pending() int { return query[int](w, `SELECT count(*) FROM outbox`) }

// quick returns a relay's configuration for tests: everything happens soon, and no lease ends while
// the machine is busy with something else.
func quick() outbox.Config {
	return outbox.Config{
		Lease: 2 * patience, PublishTimeout: patience, PollInterval: 50 * time.Millisecond,
		MinRetryDelay: 5 * time.Millisecond, MaxRetryDelay: 50 * time.Millisecond, Logger: silent(),
	}
}

func silent() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// maintain calls Maintain once, as a relay does once a minute.
func (w *world) maintain(store storage.Store) {
	w.Helper()
	w.must(w.tryMaintain(store))
}

func (w *world) tryMaintain(store storage.Store) error {
	_, err := store.Maintain(w.Context(), storage.MaintainParams{})
	return err
}

// notify makes the listeners of all processes ring.
func (w *world) notify() {
	w.Helper()
	_, err := w.store.Notify(w.Context(), storage.NotifyParams{})
	w.must(err)
}

// countBacklog counts up to the limit that relays use.
func (w *world) countBacklog(store storage.Store) storage.CountBacklogResult {
	w.Helper()
	b, err := store.CountBacklog(w.Context(),
		storage.CountBacklogParams{Limit: outbox.BacklogLimit})
	w.must(err)
	return b
}

// deadLetters returns the oldest dead letters.
func (w *world) deadLetters(limit int) []storage.DeadLetter {
	w.Helper()
	list, err := w.store.ListDeadLetters(w.Context(),
		storage.ListDeadLettersParams{Limit: limit})
	w.must(err)
	return list.DeadLetters
}

// replay returns how many dead letters were put back.
func (w *world) replay(ids ...storage.ID) int {
	w.Helper()
	done, err := w.store.ReplayDeadLetters(w.Context(),
		storage.ReplayDeadLettersParams{IDs: ids})
	w.must(err)
	return done.Replayed
}

// join registers a relay of the test's own, alive for lease.
func (w *world) join(store storage.Store, lease time.Duration) storage.ID {
	w.Helper()
	relay := uuid.New()
	_, err := store.Join(w.Context(), storage.JoinParams{Relay: relay, Lease: lease})
	w.must(err)
	return relay
}

// takeAll takes all shards that are free for a relay.
func (w *world) takeAll(store storage.Store, relay storage.ID) []storage.Ownership {
	w.Helper()
	taken, err := store.Take(w.Context(), storage.TakeParams{Relay: relay, Max: shards})
	w.must(err)
	return taken.Owned
}

// settle calls Settle, and returns how many events were changed.
func (w *world) settle(p storage.SettleParams) int {
	w.Helper()
	changed, err := w.store.Settle(w.Context(), p)
	w.must(err)
	return changed.Total()
}

// number returns the field n of an event's payload. Tests number the events of a key in ascending
// order.
func number(m *outbox.Message) int64 {
	var e struct{ N int64 }
	if err := json.Unmarshal(m.Payload, &e); err != nil {
		panic(err)
	}
	return e.N
}

// run runs a relay until the returned function is called or the test ends.
func (w *world) run(
	store storage.Store, p outbox.Publisher, c outbox.Config,
) (*outbox.Relay, func()) {
	w.Helper()
	relay, err := outbox.NewRelay(store, p, c)
	w.must(err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	done := make(chan error, 1)
	go func() { done <- relay.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.Errorf("Run: %v", err)
		}
	})
	w.Cleanup(stop)
	return relay, stop
}

// published waits until n messages were published.
func (w *world) published(p *outboxtest.RecordingPublisher, n int) []outbox.Message {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	messages, err := p.Wait(ctx, n)
	if err != nil {
		w.Fatalf("%d of %d events were published: %v", len(messages), n, err)
	}
	return messages
}

// once fails the test unless messages are n different events, each published once.
func (w *world) once(messages []outbox.Message, n int) {
	w.Helper()
	seen := map[outbox.ID]bool{}
	for i := range messages {
		if seen[messages[i].ID] {
			w.Fatalf("event %s was published twice", messages[i].ID)
		}
		seen[messages[i].ID] = true
	}
	w.equal("events published", len(seen), n)
}

// publisherFunc makes a publisher of a function.
type publisherFunc func(ctx context.Context, m *outbox.Message) error

func (f publisherFunc) Publish(ctx context.Context, m *outbox.Message) error { return f(ctx, m) }
