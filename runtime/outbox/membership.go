package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// membership keeps a relay's lease, and its fair share of the shards.
type membership struct{ *core }

// join registers the relay, and takes shards.
func (m membership) join(ctx context.Context) error {
	m.lease.start()
	asked := m.lease.now()
	err := bounded(ctx, m.store, m.config.Lease/3, func(ctx context.Context) error {
		_, err := m.store.Join(ctx, storage.JoinParams{Relay: m.id, Lease: m.config.Lease})
		return err
	})
	if err == nil {
		m.lease.renew(asked, m.config.Lease)
		err = m.renew(ctx, ctx)
	}
	if err != nil && !errors.Is(err, ErrUnusable) {
		err = errors.Join(err, m.leave(ctx)) // the relay may have joined in spite of the error
	}
	return err
}

// leave ends the registration, so that others can take the shards at once.
func (m membership) leave(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	leave := func() error {
		return bounded(ctx, m.store, m.config.grace()/2, func(ctx context.Context) error {
			_, err := m.store.Leave(ctx, storage.LeaveParams{Relay: m.id})
			return err
		})
	}
	err := leave()
	if err != nil {
		err = leave() // on another connection
	}
	if err != nil {
		return fmt.Errorf("outbox: other relays have to wait for the end of the lease: %w", err)
	}
	return nil
}

// keep renews the lease whenever a third of it has passed, and takes or gives back shards, until
// sessionCtx ends. If it cannot renew the lease, it ends the session before the lease ends.
func (m membership) keep(sessionCtx, readCtx context.Context) {
	wait := m.config.Lease / 3
	for sleep(sessionCtx, min(wait, m.lease.left())) {
		if m.lease.left() <= 0 {
			m.cancelSession(fmt.Errorf("%w: it ended before it could be renewed",
				storage.ErrLeaseLost))
			return
		}
		wait = m.config.Lease / 3
		err := m.renew(sessionCtx, readCtx)
		if errors.Is(err, storage.ErrLeaseLost) {
			m.cancelSession(err)
			return
		}
		if err != nil {
			wait = min(wait, m.config.Lease/20)
		}
		m.health.report(sessionCtx, renewing, err)
	}
}

// renew sends a heartbeat. As long as the relay reads, it then takes or gives back shards.
func (m membership) renew(ctx, readCtx context.Context) error {
	limit := min(m.config.Lease/3, max(time.Duration(0), m.lease.left()))
	return bounded(ctx, m.store, limit, func(ctx context.Context) error {
		asked := m.lease.now()
		counts, err := m.store.Renew(ctx,
			storage.RenewParams{Relay: m.id, Lease: m.config.Lease})
		if err != nil {
			return err
		}
		m.lease.renew(asked, m.config.Lease)
		if readCtx.Err() != nil || counts.Relays < 1 {
			return nil
		}
		fair := (counts.Shards + counts.Relays - 1) / counts.Relays
		have := m.ledger.Kept()
		if have < fair {
			return m.take(ctx, fair-have)
		}
		m.ledger.GiveBack(have - fair)
		return m.release(ctx)
	})
}

func (m membership) take(ctx context.Context, n int) error {
	taken, err := m.store.Take(ctx,
		storage.TakeParams{Relay: m.id, Max: n, Held: m.ledger.Owned()})
	owned := taken.Owned
	if err != nil || len(owned) == 0 {
		return err
	}
	var last int64 // the highest seq that a previous owner may have had in flight
	if slices.ContainsFunc(owned, func(o storage.Ownership) bool { return o.Suspect }) {
		now, err := m.store.Check(ctx, storage.CheckParams{Relay: m.id})
		if err != nil {
			_, released := m.store.Release(ctx, storage.ReleaseParams{Relay: m.id, Owned: owned})
			return errors.Join(err, released)
		}
		last = now.LastSeq
	}
	m.ledger.Own(owned, last, m.config.MaxInFlight)
	return nil
}

// release gives back the shards that are leaving, once nothing of them is in flight.
func (m membership) release(ctx context.Context) error {
	gone := m.ledger.Released()
	if len(gone) == 0 {
		return nil
	}
	if _, err := m.store.Release(ctx, storage.ReleaseParams{Relay: m.id, Owned: gone}); err != nil {
		return err
	}
	m.ledger.Disown(gone)
	return nil
}
