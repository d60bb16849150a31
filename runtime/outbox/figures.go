package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// BacklogLimit is the largest number that a Backlog counts to, so that counting stays cheap.
const BacklogLimit = 100_000

// Backlog is what stands in an outbox, whichever relay is to publish it.
type Backlog struct {
	// Pending is the number of events that are committed and not yet published, those that wait for
	// a retry included. It is BacklogLimit if there are that many or more.
	Pending int
	// Oldest is how long ago the oldest of them was enqueued, or 0 if there are none. Of
	// BacklogLimit events and more, it is the oldest of those that come first.
	Oldest time.Duration
	// Dead is the number of dead letters. It is BacklogLimit if there are that many or more.
	Dead int
}

const backlogInterval = 10 * time.Second

// countBacklog keeps the backlog of Stats up to date until ctx ends.
func (r *Relay) countBacklog(ctx context.Context) {
	for ctx.Err() == nil {
		err := bounded(ctx, r.store, backlogInterval, func(ctx context.Context) error {
			b, err := r.store.CountBacklog(ctx, storage.CountBacklogParams{Limit: BacklogLimit})
			if err == nil {
				r.backlog.Store(&Backlog{Pending: b.Pending, Oldest: b.Oldest, Dead: b.DeadLetters})
			}
			return err
		})
		if errors.Is(err, storage.ErrUnsupported) {
			return
		}
		r.health.report(ctx, counting, err)
		sleep(ctx, backlogInterval)
	}
}
