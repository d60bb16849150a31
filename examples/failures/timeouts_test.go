package failures_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
)

// TestAReadThatTheServerEndsLeavesThePoolToOthers has reads run into the role's statement_timeout while others use the same pool. A
// connection that was given back twice would be two users' at once: the race detector sees that.
func TestAReadThatTheServerEndsLeavesThePoolToOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pool := connect(t, w.url, func(c *pgxpool.Config) {
		c.MaxConns = 4
		c.ConnConfig.RuntimeParams["statement_timeout"] = "20ms"
	})
	store := events.NewStore(pool)
	lock := w.begin()
	_, err := lock.Exec(t.Context(), `LOCK TABLE outbox IN ACCESS EXCLUSIVE MODE`)
	w.must(err)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 20 {
				var refused *pgconn.PgError
				if _, err := store.Read(t.Context(), everyShard(20), nil, 1<<20); !errors.As(err, &refused) || refused.Code != "57014" {
					t.Errorf("got error %v, want that the statement was cancelled", err)
				}
				var one int
				if err := pool.QueryRow(t.Context(), `SELECT 1`).Scan(&one); err != nil || one != 1 {
					t.Errorf("got %d and error %v from another statement, want 1", one, err)
				}
			}
		})
	}
	group.Wait()
	w.must(lock.Rollback(t.Context()))
	w.enqueue(manyThings(3)...)
	messages, err := store.Read(t.Context(), everyShard(20), nil, 1<<20)
	w.must(err)
	w.equal("read", len(messages), 3)
}
