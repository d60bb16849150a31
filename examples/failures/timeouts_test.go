package failures_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
)

// TestAReadThatTheServerEndsLeavesThePoolToOthers has reads run into the role's statement_timeout
// while others use the same pool. If a connection were returned to the pool twice, two users would
// share it, which the race detector would report.
func TestAReadThatTheServerEndsLeavesThePoolToOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backlog(20_000, 1000)
	pool := connect(t, w.url, func(c *pgxpool.Config) {
		c.MaxConns = 4
		// It ends reads in the middle of their rows.
		c.ConnConfig.RuntimeParams["statement_timeout"] = "5ms"
	})
	store := events.NewStore(pool)
	cancelled := func(err error) bool {
		var refused *pgconn.PgError
		return errors.As(err, &refused) && refused.Code == "57014"
	}
	var reads, ended atomic.Int64
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 20 {
				reads.Add(1)
				_, err := store.Read(t.Context(), everyShard(2000, 64<<20))
				if cancelled(err) {
					ended.Add(1)
				} else if err != nil {
					t.Errorf("got error %v from a read, want that it was cancelled", err)
				}
				if _, err := pool.Exec(t.Context(), `SELECT 1`); err != nil && !cancelled(err) {
					t.Errorf("got error %v from another statement", err)
				}
			}
		})
	}
	group.Wait()
	if 2*ended.Load() < reads.Load() {
		t.Errorf("of %d reads %d were cancelled, want most of them", reads.Load(), ended.Load())
	}
	w.eventually("the pool can be used", func() bool {
		r, err := store.Read(t.Context(), everyShard(1, 1<<20))
		return err == nil && len(r.Items) == 16
	})
}
