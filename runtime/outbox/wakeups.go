package outbox

import (
	"context"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// forwardInterval is the least time between two wake-ups of other processes.
const forwardInterval = 20 * time.Millisecond

const notifyTimeout = 5 * time.Second

// ForwardWakeups passes the rings of the store's doorbell on to relays that have another store, in
// this process or in others, until ctx ends. A process that enqueues and runs no relay should run
// it once, so that its events are published within milliseconds instead of at the relays' next
// poll. Relay.Run includes it. Errors are ignored, since polling finds the events anyway.
func ForwardWakeups(ctx context.Context, store storage.Store) {
	rings, stop := store.Doorbell().Wait()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-rings:
		}
		_ = bounded(ctx, store, notifyTimeout, func(ctx context.Context) error {
			_, err := store.Notify(ctx, storage.NotifyParams{})
			return err
		})
		if !sleep(ctx, forwardInterval) {
			return
		}
	}
}

// endGrace is how long statements under way may take once they are not needed any more.
const endGrace = time.Second

// lingering returns a context that ends a moment after ctx does. A statement that is cancelled costs
// its connection, and the request to cancel it can end some poolers; it is better to let one end
// that takes milliseconds.
func lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	lingering, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(endGrace, cancel) })
	return lingering, func() {
		stop()
		cancel()
	}
}

// sleep waits for d. It returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
