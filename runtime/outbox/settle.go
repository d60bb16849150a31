package outbox

import (
	"context"
	"slices"
	"time"
)

// settle records what became of events, as many at a time as have come together while it recorded
// those before. It ends when end is closed and nothing is left, or with life.
func (s *session) settle(life context.Context, end <-chan struct{}) {
	for draining := false; life.Err() == nil; {
		events := s.ledger.unsettled()
		if len(events) == 0 {
			if draining && len(s.refused) == 0 {
				return
			}
			select {
			case <-s.ledger.toSettle:
				continue
			case <-end:
				draining, end = true, nil
				continue
			case <-s.refusedDue():
			case <-life.Done():
				return
			}
		}
		for _, kind := range s.settlements() {
			s.record(life, kind, events)
		}
		s.retryRefused(life)
		s.health.report(life, "giving shards back",
			bounded(life, s.store, s.config.Lease/3, s.release))
	}
}

// settlement is one way to settle events.
type settlement struct {
	is      func(verdict) bool
	counter interface{ Add(int64) int64 }
	// write records the events, which stand in the shards that are owned, and returns how many it
	// changed.
	write func(ctx context.Context, owned []Ownership, events []*event) (int, error)
}

func (s *session) settlements() []settlement {
	return []settlement{
		{func(v verdict) bool { return v == published }, &s.counters.published, s.writePublished},
		{func(v verdict) bool { return v == retry || v == untried }, &s.counters.retried,
			s.writeRetries},
		{func(v verdict) bool { return v == dead }, &s.counters.dead, s.writeDead},
	}
}

// record settles the events of one kind among events, in smaller pieces while it fails. An event
// that cannot be settled by itself is refused, and stands in the way of the others no longer.
func (s *session) record(life context.Context, kind settlement, events []*event) {
	var left []*event
	for _, e := range events {
		if kind.is(e.verdict) {
			left = append(left, e)
		}
	}
	for n := 0; len(left) > 0; {
		part := left[:min(len(left), s.settles.share(s.config.MaxInFlight))]
		err := s.recordPart(life, kind, part)
		s.settles.ended(err)
		s.health.report(life, settling, err)
		switch {
		case err == nil:
			n, left = 0, left[len(part):]
			continue
		case len(part) == 1:
			s.refuse(refusal{event: part[0], kind: kind})
			left = left[1:]
		}
		n++
		if !sleep(life, backoff(n, settleBackoff, s.config.Lease/4)) {
			return
		}
	}
}

const settleBackoff = 50 * time.Millisecond

// refusal is an event that could not be settled by itself. It stays in flight, is not published
// again by this session, and is settled by itself from now on.
type refusal struct {
	*event
	kind  settlement
	times int
	next  time.Time
}

func (s *session) refuse(r refusal) {
	r.times++
	r.next = time.Now().Add(backoff(r.times, settleBackoff, s.config.Lease/4))
	s.refused = append(s.refused, r)
	slices.SortFunc(s.refused, func(a, b refusal) int { return a.next.Compare(b.next) })
}

// refusedDue returns a channel that receives when a refused event is due, if there is one.
func (s *session) refusedDue() <-chan time.Time {
	if len(s.refused) == 0 {
		return nil
	}
	return time.After(time.Until(s.refused[0].next))
}

// retryRefused settles refused events that are due, until one of them fails: the others may be
// ready to be settled meanwhile.
func (s *session) retryRefused(life context.Context) {
	for len(s.refused) > 0 && !s.refused[0].next.After(time.Now()) {
		r := s.refused[0]
		s.refused = s.refused[1:]
		if err := s.recordPart(life, r.kind, []*event{r.event}); err != nil {
			s.health.report(life, settlingAlone, err)
			s.refuse(r)
			return
		}
		if len(s.refused) == 0 {
			s.health.report(life, settlingAlone, nil)
		}
	}
}

func (s *session) recordPart(life context.Context, kind settlement, part []*event) error {
	var changed int
	err := bounded(life, s.store, s.config.Lease, func(ctx context.Context) (err error) {
		changed, err = kind.write(ctx, ownershipsOf(part), part)
		return err
	})
	if err != nil {
		return err
	}
	kind.counter.Add(int64(changed))
	if changed < len(part) {
		s.counters.lostSettles.Add(int64(len(part) - changed))
		s.config.Logger.Warn("outbox: fenced off: another relay owns the shards, or the events "+
			"are gone",
			"events", len(part)-changed)
		s.doubt.Store(true)
	}
	s.ledger.settled(part)
	return nil
}

// ownershipsOf returns the shards of events, as they were when the events were read.
func ownershipsOf(events []*event) []Ownership {
	seen := map[Ownership]bool{}
	var owned []Ownership
	for _, e := range events {
		if o := e.lane.shard.Ownership; !seen[o] {
			seen[o] = true
			owned = append(owned, o)
		}
	}
	return owned
}

func (s *session) writePublished(
	ctx context.Context, owned []Ownership, events []*event,
) (int, error) {
	at := make([]Position, len(events))
	for i, e := range events {
		at[i] = e.Position
	}
	return s.store.Published(ctx, s.id, owned, at)
}

func (s *session) writeRetries(
	ctx context.Context, owned []Ownership, events []*event,
) (int, error) {
	retries := make([]Retry, len(events))
	for i, e := range events {
		r := Retry{
			Position: e.Position, Attempts: e.Attempts, Delay: e.delay, Error: errorText(e.err),
		}
		switch {
		case e.verdict == untried:
			r.Attempts, r.Begun = e.spent()-1, e.Begun
		case r.Delay == 0:
			r.Delay = backoff(int(e.Attempts), s.config.MinRetryDelay, s.config.MaxRetryDelay)
		}
		retries[i] = r
	}
	return s.store.Retry(ctx, s.id, owned, retries)
}

func (s *session) writeDead(ctx context.Context, owned []Ownership, events []*event) (int, error) {
	deaths := make([]Death, len(events))
	for i, e := range events {
		deaths[i] = Death{Position: e.Position, Attempts: e.Attempts, Error: errorText(e.err)}
	}
	n, err := s.store.Bury(ctx, s.id, owned, deaths)
	for i := 0; err == nil && i < len(events); i++ {
		s.config.Logger.Error("outbox: an event became a dead letter", "id", events[i].ID,
			"type", events[i].TypeName(), "attempts", events[i].Attempts, "error",
			errorText(events[i].err))
	}
	return n, err
}
