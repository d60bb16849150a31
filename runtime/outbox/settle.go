package outbox

import (
	"context"
	"slices"
	"time"

	"github.com/outboxgen/outboxgen/runtime/backoff"
	"github.com/outboxgen/outboxgen/runtime/outbox/internal/ledger"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// settler records in the database what became of events.
type settler struct {
	*core
	members membership
	sizes   ledger.Sizing
	refused []refusal // ordered by next
}

// run records what became of events, each time all that have accumulated while it recorded the
// previous ones. It returns once noMore is closed and nothing is left, or when the session ends.
func (s *settler) run(ctx context.Context, noMore <-chan struct{}) {
	for draining := false; ctx.Err() == nil; {
		events := s.ledger.Unsettled()
		if len(events) == 0 {
			if draining && len(s.refused) == 0 {
				return
			}
			select {
			case <-s.ledger.ToSettle():
				continue
			case <-noMore:
				draining, noMore = true, nil
				continue
			case <-s.refusedDue():
			case <-ctx.Done():
				return
			}
		}
		s.record(ctx, events)
		s.retryRefused(ctx)
		s.health.report(ctx, "giving shards back",
			bounded(ctx, s.store, s.config.Lease/3, s.members.release))
	}
}

// record settles events, in smaller pieces while it fails. An event that cannot be settled by
// itself is set aside as refused, so that the others can be settled.
func (s *settler) record(ctx context.Context, left []*ledger.Event) {
	for n := 0; len(left) > 0; {
		part := left[:min(len(left), s.sizes.Share(s.config.MaxInFlight))]
		err := s.recordPart(ctx, part)
		s.sizes.Ended(err)
		s.health.report(ctx, settling, err)
		switch {
		case err == nil:
			n, left = 0, left[len(part):]
			continue
		case len(part) == 1:
			s.refuse(refusal{Event: part[0]})
			left = left[1:]
		}
		n++
		if !sleep(ctx, backoff.Delay(n, settleBackoff, s.config.Lease/4)) {
			return
		}
	}
}

const settleBackoff = 50 * time.Millisecond

// refusal is an event that could not be settled by itself. It stays in flight, is not published
// again by this session, and is settled by itself from now on.
type refusal struct {
	*ledger.Event
	times int
	next  time.Time
}

func (s *settler) refuse(r refusal) {
	r.times++
	r.next = time.Now().Add(backoff.Delay(r.times, settleBackoff, s.config.Lease/4))
	s.refused = append(s.refused, r)
	slices.SortFunc(s.refused, func(a, b refusal) int { return a.next.Compare(b.next) })
}

// refusedDue returns a channel that receives when a refused event is due, if there is one.
func (s *settler) refusedDue() <-chan time.Time {
	if len(s.refused) == 0 {
		return nil
	}
	return time.After(time.Until(s.refused[0].next))
}

// retryRefused settles refused events that are due, until one of them fails. The rest waits, so
// that run can settle other events in between.
func (s *settler) retryRefused(ctx context.Context) {
	for len(s.refused) > 0 && !s.refused[0].next.After(time.Now()) {
		r := s.refused[0]
		s.refused = s.refused[1:]
		if err := s.recordPart(ctx, []*ledger.Event{r.Event}); err != nil {
			s.health.report(ctx, settlingOne, err)
			s.refuse(r)
			return
		}
		if len(s.refused) == 0 {
			s.health.report(ctx, settlingOne, nil)
		}
	}
}

// recordPart settles events, either all of them or none.
func (s *settler) recordPart(ctx context.Context, part []*ledger.Event) error {
	var changed storage.SettleResult
	err := bounded(ctx, s.store, s.config.Lease, func(ctx context.Context) (err error) {
		changed, err = s.store.Settle(ctx, s.settlement(part))
		return err
	})
	if err != nil {
		return err
	}
	s.counters.published.Add(int64(changed.Published))
	s.counters.retried.Add(int64(changed.Retries))
	s.counters.dead.Add(int64(changed.DeadLetters))
	s.logDeadLetters(part)
	if missing := len(part) - changed.Total(); missing > 0 {
		s.counters.lostSettles.Add(int64(missing))
		s.config.Logger.Warn("outbox: fenced off: another relay owns the shards, or the events "+
			"are gone",
			"events", missing)
		s.checkNow.Store(true)
	}
	s.ledger.Settled(part)
	return nil
}

// settlement returns the parameters that record the verdicts of events. It uses the ownerships of
// the time at which the events were read.
func (s *settler) settlement(events []*ledger.Event) storage.SettleParams {
	p := storage.SettleParams{Relay: s.id, Owned: ownershipsOf(events)}
	for _, e := range events {
		switch e.Verdict {
		case ledger.Published:
			p.Published = append(p.Published, e.Position)
		case ledger.Dead:
			p.DeadLetters = append(p.DeadLetters, storage.DeadLetterMove{
				Position: e.Position, Attempts: e.Attempts, Error: errorText(e.Err),
			})
		case ledger.Retried, ledger.Untried:
			p.Retries = append(p.Retries, s.retryOf(e))
		}
	}
	return p
}

func (s *settler) retryOf(e *ledger.Event) storage.Retry {
	r := storage.Retry{
		Position: e.Position, Attempts: e.Attempts, Delay: e.Delay, Error: errorText(e.Err),
	}
	switch {
	case e.Verdict == ledger.Untried:
		r.Attempts, r.Interrupted = e.Spent()-1, e.Interrupted
	case r.Delay == 0:
		r.Delay = backoff.Delay(int(e.Attempts), s.config.MinRetryDelay, s.config.MaxRetryDelay)
	}
	return r
}

// ownershipsOf returns the shards of events, as they were when the events were read.
func ownershipsOf(events []*ledger.Event) []storage.Ownership {
	seen := map[storage.Ownership]bool{}
	var owned []storage.Ownership
	for _, e := range events {
		if o := e.Ownership(); !seen[o] {
			seen[o] = true
			owned = append(owned, o)
		}
	}
	return owned
}

func (s *settler) logDeadLetters(events []*ledger.Event) {
	for _, e := range events {
		if e.Verdict == ledger.Dead {
			s.config.Logger.Error("outbox: an event became a dead letter", "id", e.ID,
				"type", e.TypeName(), "attempts", e.Attempts, "error", errorText(e.Err))
		}
	}
}
