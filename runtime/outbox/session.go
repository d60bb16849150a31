package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox/internal/ledger"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// session is a relay under one id. Four kinds of goroutine work on its ledger: one renews the lease and takes shards, one
// reads, some publish, one settles.
type session struct {
	*Relay
	id      ID
	ledger  *ledger.Ledger
	ends    atomic.Int64 // when the lease ends by this process's clock, in ns since began
	began   time.Time    // monotonic
	dueRead time.Time    // when due events were read last
	end     context.CancelCauseFunc

	checked time.Time           // when the incarnation was checked last
	known   storage.CheckResult // what it was then
	doubt   atomic.Bool         // it is to be checked at once

	watermarkState any // the store's

	reads   ledger.Sizing // how large reads may be
	settles ledger.Sizing
	refused []refusal // by when they are due
}

func (s *session) join(ctx context.Context) error {
	s.began = time.Now()
	asked := time.Since(s.began)
	err := bounded(ctx, s.store, s.config.Lease/3, func(ctx context.Context) error {
		_, err := s.store.Join(ctx, storage.JoinParams{Relay: s.id, Lease: s.config.Lease})
		return err
	})
	if err == nil {
		s.ends.Store(int64(asked + s.config.Lease))
		err = s.renew(ctx, ctx)
	}
	if err != nil && !errors.Is(err, ErrUnusable) {
		err = errors.Join(err, s.leave(ctx)) // it may have joined all the same
	}
	return err
}

// leaseLeft is how long the lease lasts still, counted from before it was asked for.
func (s *session) leaseLeft() time.Duration {
	return time.Duration(s.ends.Load()) - time.Since(s.began)
}

// run works until ctx ends or the lease is lost. On the former it drains: publishes under way may
// end within the PublishTimeout, are settled, and the shards are given back.
func (s *session) run(ctx context.Context, rings <-chan struct{}, once bool) error {
	life, end := context.WithCancelCause(context.WithoutCancel(ctx)) // ends with the lease, or after draining
	defer end(nil)
	s.end = end
	reading, stopReading := context.WithCancel(life)
	defer stopReading()
	defer context.AfterFunc(ctx, stopReading)()

	var members, workers, settler sync.WaitGroup
	settling := make(chan struct{}) // closed when nothing more comes
	members.Go(func() { s.keepMembership(life, reading) })
	s.ledger.StaffWith(func() { workers.Go(func() { s.publish(life) }) })
	settler.Go(func() { s.settle(life, settling) })
	failed := s.read(reading, rings, once)

	s.ledger.Drain()
	defer time.AfterFunc(s.config.DrainTimeout, func() { end(errDrainTimeout) }).Stop()
	workers.Wait()
	close(settling)
	settler.Wait()
	cause := context.Cause(life)
	end(nil)
	members.Wait()
	if errors.Is(cause, storage.ErrLeaseLost) {
		s.counters.leasesLost.Add(1)
	}
	return errors.Join(cause, failed, s.leave(ctx)) // the lease may have been renewed all the same
}

var errDrainTimeout = errors.New("outbox: not drained in time")

func (s *session) leave(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	leave := func() error {
		return bounded(ctx, s.store, s.config.grace()/2, func(ctx context.Context) error {
			_, err := s.store.Leave(ctx, storage.LeaveParams{Relay: s.id})
			return err
		})
	}
	err := leave()
	if err != nil {
		err = leave() // on another connection
	}
	if err != nil {
		return fmt.Errorf("outbox: the shards are free only when the lease ends: %w", err)
	}
	return nil
}

// keepMembership renews the lease every third of it, and takes or gives back shards. It ends the
// session before the lease ends, if it cannot renew it.
func (s *session) keepMembership(life, reading context.Context) {
	wait := s.config.Lease / 3
	for sleep(life, min(wait, s.leaseLeft())) {
		if s.leaseLeft() <= 0 {
			s.end(fmt.Errorf("%w: it ended before it could be renewed", storage.ErrLeaseLost))
			return
		}
		wait = s.config.Lease / 3
		err := s.renew(life, reading)
		if errors.Is(err, storage.ErrLeaseLost) {
			s.end(err)
			return
		}
		if err != nil {
			wait = min(wait, s.config.Lease/20)
		}
		s.health.report(life, renewing, err)
	}
}

// renew sends a heartbeat, and then has the relay own its fair share of the shards.
func (s *session) renew(life, reading context.Context) error {
	limit := min(s.config.Lease/3, max(0, s.leaseLeft()))
	return bounded(life, s.store, limit, func(ctx context.Context) error {
		asked := time.Since(s.began)
		counts, err := s.store.Renew(ctx,
			storage.RenewParams{Relay: s.id, Lease: s.config.Lease})
		if err != nil {
			return err
		}
		s.ends.Store(int64(asked + s.config.Lease))
		if reading.Err() != nil || counts.Relays < 1 {
			return nil
		}
		fair := (counts.Shards + counts.Relays - 1) / counts.Relays
		have := s.ledger.Kept()
		if have < fair {
			return s.take(ctx, fair-have)
		}
		s.ledger.GiveBack(have - fair)
		return s.release(ctx)
	})
}

// checkInterval is how often a relay that reads looks whether the database has gone back in time.
const checkInterval = 100 * time.Millisecond

// check ends the session if what it remembers may be wrong: a crash undoes settles that had not
// reached the disk, a standby that lags is promoted, a backup is restored. Events would then stand
// below the positions that this session reads from, and be found by a new one only.
func (s *session) check(ctx context.Context) error {
	if !s.doubt.Swap(false) && time.Since(s.checked) < min(checkInterval, s.config.PollInterval) {
		return nil
	}
	now, err := s.store.Check(ctx, storage.CheckParams{Relay: s.id})
	if err != nil && !errors.Is(err, storage.ErrLeaseLost) {
		return err
	}
	first := s.checked.IsZero()
	s.checked = time.Now()
	if err == nil && (first || now.Incarnation == s.known.Incarnation && now.LastSeq >= s.known.LastSeq) {
		s.known = now
		return nil
	}
	if err == nil {
		err = storage.ErrLeaseLost
	}
	err = fmt.Errorf(
		"%w: the database has crashed or gone back in time, or the outbox was replaced", err,
	)
	s.end(err)
	return err
}

func (s *session) take(ctx context.Context, n int) error {
	taken, err := s.store.Take(ctx,
		storage.TakeParams{Relay: s.id, Max: n, Held: s.ledger.Owned()})
	owned := taken.Owned
	if err != nil || len(owned) == 0 {
		return err
	}
	var last int64 // what the previous owner may have had in flight lies no higher
	if slices.ContainsFunc(owned, func(o storage.Ownership) bool { return o.Suspect }) {
		now, err := s.store.Check(ctx, storage.CheckParams{Relay: s.id})
		if err != nil {
			_, released := s.store.Release(ctx, storage.ReleaseParams{Relay: s.id, Owned: owned})
			return errors.Join(err, released)
		}
		last = now.LastSeq
	}
	s.ledger.Own(owned, last, s.config.MaxInFlight)
	return nil
}

// release gives back the shards that are leaving, once nothing of them is in flight.
func (s *session) release(ctx context.Context) error {
	gone := s.ledger.Released()
	if len(gone) == 0 {
		return nil
	}
	if _, err := s.store.Release(ctx, storage.ReleaseParams{Relay: s.id, Owned: gone}); err != nil {
		return err
	}
	s.ledger.Disown(gone)
	return nil
}
