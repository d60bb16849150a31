package outbox

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/outboxgen/outboxgen/runtime/backoff"
	"github.com/outboxgen/outboxgen/runtime/outbox/internal/ledger"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// core has what the goroutines of a session share.
type core struct {
	id        ID
	store     storage.Store
	publisher Publisher
	config    Config
	health    *health
	counters  *counters
	ledger    *ledger.Ledger
	lease     leaseClock
	// cancelSession ends the session, and says why.
	cancelSession context.CancelCauseFunc
	// checkNow asks for a check of the database's incarnation at once.
	checkNow atomic.Bool
}

// charge counts an attempt of each item before it is made, so that it is counted even if it ends
// this process.
func (c *core) charge(ctx context.Context, items ...*storage.Item) error {
	p := storage.SettleParams{
		Relay: c.id, Owned: c.ledger.Owned(), Retries: make([]storage.Retry, len(items)),
	}
	for i, item := range items {
		attempt := ledger.OneMore(item.Attempts)
		p.Retries[i] = storage.Retry{
			Position: item.Position, Attempts: attempt, Interrupted: true,
			Delay: backoff.Delay(int(attempt), c.config.MinRetryDelay, c.config.MaxRetryDelay),
			Error: fmt.Sprintf("attempt %d began and has not ended", attempt),
		}
	}
	var changed storage.SettleResult
	err := bounded(ctx, c.store, c.config.Lease/3, func(ctx context.Context) (err error) {
		changed, err = c.store.Settle(ctx, p)
		return err
	})
	switch {
	case err != nil:
		return err
	case changed.Retries < len(items):
		c.checkNow.Store(true)
		return fmt.Errorf("outbox: of %d attempts %d could be charged", len(items), changed.Retries)
	}
	for _, item := range items {
		item.Attempts = ledger.OneMore(item.Attempts)
	}
	return nil
}

// leaseClock measures what is left of the lease, by this process's clock.
type leaseClock struct {
	began time.Time    // monotonic
	ends  atomic.Int64 // in nanoseconds since began
}

// start begins to count.
func (l *leaseClock) start() { l.began = time.Now() }

// now returns the time since the lease began to count.
func (l *leaseClock) now() time.Duration { return time.Since(l.began) }

// renew notes that the lease lasts for d from the time at which it was asked for.
func (l *leaseClock) renew(asked, d time.Duration) { l.ends.Store(int64(asked + d)) }

// left returns how long the lease still lasts; it is negative once the lease has ended.
func (l *leaseClock) left() time.Duration { return time.Duration(l.ends.Load()) - l.now() }
