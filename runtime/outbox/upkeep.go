package outbox

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/outboxgen/outboxgen/runtime/backoff"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// upkeep has the background tasks of a relay that do not depend on its lease.
type upkeep struct {
	store    storage.Store
	health   *health
	counters *counters
	backlog  atomic.Pointer[Backlog] // nil until the first count
}

// listen runs the store's listener, restarts it when it fails, and sends to rings when another
// process may have committed events.
func (u *upkeep) listen(ctx context.Context, rings chan struct{}) {
	for n := 1; ctx.Err() == nil; n++ {
		ready := func() {
			n = 0
			if !u.counters.listening.Swap(true) {
				notify(rings) // wake-ups may have been missed before
			}
			u.health.report(ctx, listening, nil)
		}
		_, err := u.store.Listen(ctx,
			storage.ListenParams{Ready: ready, Ring: func() { notify(rings) }})
		u.counters.listening.Store(false)
		if errors.Is(err, storage.ErrUnsupported) {
			return
		}
		u.health.report(ctx, listening, err)
		sleep(ctx, backoff.Delay(n+1, 100*time.Millisecond, 30*time.Second))
	}
}

const maintainTimeout = time.Minute

// maintain calls the store's Maintain, now and about once a minute.
func (u *upkeep) maintain(ctx context.Context) {
	queryCtx, cancel := lingering(ctx)
	defer cancel()
	for ctx.Err() == nil {
		u.health.report(ctx, tidying, bounded(queryCtx, u.store, maintainTimeout,
			func(ctx context.Context) error {
				_, err := u.store.Maintain(ctx, storage.MaintainParams{})
				return err
			}))
		sleep(ctx, time.Minute+backoff.Jitter(time.Second))
	}
}

const backlogInterval = 10 * time.Second

// countBacklog keeps the backlog of Stats up to date until ctx ends.
func (u *upkeep) countBacklog(ctx context.Context) {
	queryCtx, cancel := lingering(ctx)
	defer cancel()
	for ctx.Err() == nil {
		err := bounded(queryCtx, u.store, backlogInterval, func(ctx context.Context) error {
			b, err := u.store.CountBacklog(ctx, storage.CountBacklogParams{Limit: BacklogLimit})
			if err == nil {
				u.backlog.Store(&Backlog{Pending: b.Pending, Oldest: b.Oldest,
					DeadLetters: b.DeadLetters})
			}
			return err
		})
		if errors.Is(err, storage.ErrUnsupported) {
			return
		}
		u.health.report(ctx, counting, err)
		sleep(ctx, backlogInterval)
	}
}

// notify sends to c, which has a buffer of one, unless a send is pending already.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
