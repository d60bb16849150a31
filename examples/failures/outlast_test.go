package failures_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// TestRelaysOutlastTheEndOfAllTheirConnections ends every session of the database again and again,
// as a restart does, and then blocks the database for longer than the lease.
func TestRelaysOutlastTheEndOfAllTheirConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`CREATE TABLE truth (id uuid)`)
	recording := &outboxtest.RecordingPublisher{}
	relayPool := connect(t, w.url, victim)
	for range 2 {
		c := quick()
		c.Lease, c.PublishTimeout = 2*time.Second, 500*time.Millisecond
		w.run(events.NewStore(relayPool), recording, c)
	}
	stop := make(chan struct{})
	var producer sync.WaitGroup
	producer.Go(func() { w.produce(connect(t, w.url, victim), stop) })
	for range 15 {
		before := len(recording.Messages())
		w.terminateVictims()
		w.eventually("events are published again", func() bool {
			return len(recording.Messages()) > before+5
		})
	}
	w.hang()
	close(stop)
	producer.Wait()
	w.eventually("all is settled", func() bool { return w.pending() == 0 })
	published := map[string]bool{}
	for _, m := range recording.Messages() {
		published[m.ID.String()] = true
	}
	rows, err := w.pool.Query(t.Context(), `SELECT id::text FROM truth`)
	w.must(err)
	committed, err := pgx.CollectRows(rows, pgx.RowTo[string])
	w.must(err)
	for _, id := range committed {
		if !published[id] {
			t.Errorf("event %s was committed and never published", id)
		}
	}
	w.equal("events published", len(published), len(committed))
}

func victim(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["application_name"] = "victim" }

// produce commits events until stop is closed, whatever happens to the connections.
func (w *world) produce(pool *pgxpool.Pool, stop <-chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		case <-time.After(time.Millisecond):
		}
		_ = pgx.BeginFunc(w.Context(), pool, func(tx pgx.Tx) error {
			ids, err := w.store.Enqueue(w.Context(), tx, thing(fmt.Sprint("key ", n%5), n))
			if err != nil {
				return err
			}
			_, err = tx.Exec(w.Context(), `INSERT INTO truth VALUES ($1)`, ids[0].String())
			return err
		})
	}
}

func (w *world) terminateVictims() {
	w.Helper()
	w.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'victim'`)
}

// hang blocks every statement about relays' membership until all leases have ended.
func (w *world) hang() {
	w.Helper()
	tx := w.begin()
	_, err := tx.Exec(w.Context(), `LOCK TABLE outbox_relay IN ACCESS EXCLUSIVE MODE`)
	w.must(err)
	w.eventually("the lease of every relay has ended", func() bool {
		var alive int
		w.must(tx.QueryRow(w.Context(),
			`SELECT count(*) FROM outbox_relay WHERE expires_at > clock_timestamp()`).Scan(&alive))
		return alive == 0
	})
	w.must(tx.Rollback(w.Context()))
}
