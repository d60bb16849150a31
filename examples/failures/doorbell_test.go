package failures_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
	"github.com/outboxgen/outboxgen/internal/testenv/postgresenv"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// TestCommitsOfProducersWaitForNoNotify holds the lock that NOTIFY takes when its transaction
// commits. There is one such lock in the server: a session that has sent a notification holds it
// while its commit waits for a standby that does not exist.
func TestCommitsOfProducersWaitForNoNotify(t *testing.T) {
	t.Parallel()
	w := ownServer(t)
	w.exec(`ALTER SYSTEM SET synchronous_standby_names = 'nobody'`)
	w.exec(`SELECT pg_reload_conf()`)
	w.eventually("the standby is waited for", func() bool {
		return query[string](w, `SHOW synchronous_standby_names`) == "nobody"
	})
	release := w.holdNotifyLock()
	defer release()

	timely := connect(t, w.url,
		func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["lock_timeout"] = "5s" })
	notifying := func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `SELECT pg_notify('outbox', '')`)
		return err
	}
	var refused *pgconn.PgError
	if err := pgx.BeginFunc(t.Context(), timely, notifying); !errors.As(err, &refused) ||
		refused.Code != "55P03" {
		t.Fatalf("a commit with a notification: got %v, want a lock timeout", err)
	}
	recording := &outboxtest.RecordingPublisher{}
	w.run(w.store, recording, quick()) // it sends a notification, which waits for the lock
	for n := range 50 {
		w.must(pgx.BeginFunc(t.Context(), timely, func(tx pgx.Tx) error {
			_, err := w.store.Enqueue(t.Context(), tx, thing("a", n))
			return err
		}))
	}
	w.published(recording, 50)
}

// ownServer is a database on a server that the test may configure.
func ownServer(t *testing.T) *world {
	t.Helper()
	if os.Getenv("OUTBOXGEN_TEST_POSTGRES_URL") != "" {
		t.Skip("the server that OUTBOXGEN_TEST_POSTGRES_URL names is not the test's to configure")
	}
	postgresenv.Shared(t) // skips or fails the test if there is no server
	server, err := postgresenv.Start(t.Context(), postgresenv.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	db, err := server.CreateDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return worldAt(t, db.URL)
}

// holdNotifyLock returns once a session holds the lock and cannot complete its commit.
func (w *world) holdNotifyLock() (release func()) {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), w.url)
	w.must(err)
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = conn.Exec(ctx, `SET synchronous_commit = on; CREATE TABLE wal (); NOTIFY outbox`)
	}()
	w.eventually("the lock is held", func() bool {
		return query[bool](w, `SELECT EXISTS (SELECT FROM pg_locks
			WHERE locktype = 'object' AND granted AND classid = 'pg_database'::regclass
			AND objid = 0 AND mode = 'AccessExclusiveLock')`)
	})
	return func() {
		cancel()
		<-done
		_ = conn.Close(context.Background())
	}
}

// listenerPid returns the process id of the session that listens, or 0.
func (w *world) listenerPid() int {
	return query[int](w, `SELECT COALESCE(max(pid), 0) FROM pg_stat_activity
		WHERE datname = current_database() AND query LIKE 'LISTEN%' AND state = 'idle'`)
}

// insertElsewhere commits an event as another process would, without ringing a doorbell of this
// one.
func (w *world) insertElsewhere(key string) {
	w.Helper()
	w.exec(`INSERT INTO outbox (shard, id, type, version, topic, key, payload, content_type)
		VALUES (0, $1, 'thing.happened', 1, 'things', $2, '{}', 'application/json')`,
		uuid.NewString(), key)
}

func TestTheListenerSitsInNoTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	began, goOn := make(chan struct{}, 1), make(chan struct{})
	defer close(goOn)
	relay, _ := w.run(w.store, publisherFunc(func(context.Context, *outbox.Message) error {
		select {
		case began <- struct{}{}:
		default:
		}
		<-goOn
		return nil
	}), quick())
	w.eventually("the relay listens", func() bool {
		return relay.Stats().Listening && w.listenerPid() != 0
	})
	w.enqueue(thing("a", 1), thing("b", 1))
	<-began // the publish goes on until the test allows its end
	for range 100 {
		w.notify()
		// The server itself opens a transaction for a moment to pass a notification on.
		w.eventually("the listener is in no transaction", func() bool {
			return query[bool](w, `SELECT
				COALESCE(bool_and(xact_start IS NULL AND backend_xmin IS NULL), false)
				FROM pg_stat_activity WHERE pid = $1`, w.listenerPid())
		})
	}
}

func TestAListenerThatLosesItsConnectionListensAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	recording := &outboxtest.RecordingPublisher{}
	c := quick()
	c.PollInterval = 10 * patience // so that only the doorbell makes the relay look
	relay, _ := w.run(w.store, recording, c)
	for n := range 3 {
		w.eventually("the relay listens", func() bool {
			return relay.Stats().Listening && w.listenerPid() != 0
		})
		w.insertElsewhere(fmt.Sprint("key ", n))
		w.notify()
		w.published(recording, n+1)
		pid := w.listenerPid()
		w.exec(`SELECT pg_terminate_backend($1)`, pid)
		w.eventually("another session listens", func() bool { return w.listenerPid() != pid })
	}
}

// failingListener is a store whose Listen always fails.
type failingListener struct{ *events.Store }

func (failingListener) Listen(context.Context, storage.ListenParams) (storage.ListenResult, error) {
	return storage.ListenResult{}, errors.New("no connection")
}

func TestPollingFindsEventsWhileNobodyListens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	recording := &outboxtest.RecordingPublisher{}
	relay, _ := w.run(failingListener{w.store}, recording, quick())
	for n := range 20 {
		w.insertElsewhere(fmt.Sprint("key ", n))
		w.published(recording, n+1)
		w.eventually("the relay has nothing to do", func() bool {
			return w.pending() == 0 && relay.Stats().InFlight == 0
		})
	}
	w.equal("listening", relay.Stats().Listening, false)
}

func TestStoresShareNoDoorbell(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t), newWorld(t)
	heard := func(s *events.Store) func() bool {
		rings, stop := s.Doorbell().Wait()
		t.Cleanup(stop)
		return func() bool {
			select {
			case <-rings:
				return true
			default:
				return false
			}
		}
	}
	same, twin, elsewhere := heard(w.store), heard(events.NewStore(w.pool)), heard(other.store)
	w.enqueue(thing("a", 1))
	w.equal("the store that enqueued rings", same(), true)
	w.equal("another one of the same database rings", twin(), false)
	w.equal("that of another database rings", elsewhere(), false)
}
