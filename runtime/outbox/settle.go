package outbox

import (
	"context"
	"errors"
	"slices"
	"time"
)

// settle records what became of events, as many at a time as have come together while it recorded those before. It ends when
// end is closed and nothing is left, or with life.
func (s *session) settle(life context.Context, end <-chan struct{}) {
	for n := 0; life.Err() == nil; {
		events := s.ledger.unsettled()
		if len(events) == 0 {
			select {
			case <-s.ledger.toSettle:
				continue
			case <-end:
				if events = s.ledger.unsettled(); len(events) == 0 {
					return
				}
			case <-life.Done():
				return
			}
		}
		b := s.batch(events)
		for !s.record(life, b) { // it stays in flight, and is not published again by this relay
			n++
			if !sleep(life, backoff(n, 50*time.Millisecond, s.config.Lease/4)) {
				return
			}
		}
		n = 0
		s.ledger.settled(events)
		if err := s.release(life); err != nil && life.Err() == nil {
			s.config.Logger.Warn("outbox: shards were not given back", "error", err)
		}
	}
}

// settlement is what is to be recorded of a number of events, by what became of them.
type settlement struct {
	owned     []Ownership // the shards concerned, as they were when the events were read
	published []Position
	retries   []Retry
	deaths    []Death
}

func (s *session) batch(events []*event) *settlement {
	b := &settlement{published: make([]Position, 0, len(events))}
	for _, e := range events {
		if o := e.lane.shard.Ownership; !slices.Contains(b.owned, o) {
			b.owned = append(b.owned, o)
		}
		switch e.verdict {
		case published:
			b.published = append(b.published, e.Position)
		case dead:
			s.config.Logger.Error("outbox: an event became a dead letter",
				"id", e.ID, "type", e.TypeName(), "attempts", e.Attempts, "error", e.err)
			b.deaths = append(b.deaths, Death{Position: e.Position, Attempts: e.Attempts, Error: errorText(e.err)})
		case retry:
			delay := e.delay
			if delay == 0 {
				delay = backoff(int(e.Attempts), s.config.BackoffMin, s.config.BackoffMax)
			}
			b.retries = append(b.retries, Retry{Position: e.Position, Attempts: e.Attempts, Delay: delay, Error: errorText(e.err)})
		case untried:
			b.retries = append(b.retries, Retry{Position: e.Position, Attempts: e.spent() - 1, Begun: e.Begun, Error: errorText(e.err)})
		}
	}
	return b
}

// record writes b, and forgets of it what is written. It reports whether that is all.
func (s *session) record(ctx context.Context, b *settlement) bool {
	ctx, cancel := context.WithTimeout(ctx, s.config.Lease)
	defer cancel()
	var err error
	write := func(n int, counter interface{ Add(int64) int64 }, f func() (int, error)) bool {
		if n == 0 || err != nil {
			return n == 0
		}
		var changed int
		if changed, err = f(); err != nil {
			return false
		}
		counter.Add(int64(changed))
		if changed < n {
			s.counters.lostSettles.Add(int64(n - changed))
			s.config.Logger.Warn("outbox: settled in vain: shards have changed hands, or events are gone", "events", n-changed)
		}
		return true
	}
	if write(len(b.published), &s.counters.published, func() (int, error) {
		return s.store.Published(ctx, s.id, b.owned, b.published)
	}) {
		b.published = nil
	}
	if write(len(b.retries), &s.counters.retried, func() (int, error) {
		return s.store.Retry(ctx, s.id, b.owned, b.retries)
	}) {
		b.retries = nil
	}
	if write(len(b.deaths), &s.counters.dead, func() (int, error) {
		return s.store.Bury(ctx, s.id, b.owned, b.deaths)
	}) {
		b.deaths = nil
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		s.config.Logger.Warn("outbox: settling failed", "error", err)
	}
	return err == nil
}
