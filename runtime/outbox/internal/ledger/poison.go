package ledger

import (
	"errors"

	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

var errUnfinished = errors.New("the relay ended during the last attempt, as during those before")

// PoisonCandidates returns those items that a vanished relay may have had in flight. Their attempts
// must be charged before they are made. Resumed says that the items come from a read of keys.
func (l *Ledger) PoisonCandidates(items []storage.Item, resumed bool) []*storage.Item {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.anyCandidate() {
		return nil
	}
	var out []*storage.Item
	waiting := map[string]bool{}
	for n := range items {
		i := &items[n]
		waiting[i.Key] = waiting[i.Key] || i.NotDue && i.Key != ""
		if waiting[i.Key] || !l.isCandidate(i, resumed) {
			continue
		}
		l.shards[i.Shard].candidates--
		out = append(out, i)
	}
	return out
}

func (l *Ledger) isCandidate(i *storage.Item, resumed bool) bool {
	s := l.shards[i.Shard]
	if s == nil || s.candidates <= 0 || i.Seq > s.lastCandidate || i.Interrupted || i.NotDue ||
		s.flight[i.Seq] != nil {
		return false
	}
	lane := s.lanes[i.Key]
	return resumed || !lane.skips() || lane.head == i.Seq
}

// anyCandidate reports whether a shard has events left to charge.
func (l *Ledger) anyCandidate() bool {
	for _, s := range l.shards {
		if s.candidates > 0 {
			return true
		}
	}
	return false
}

// hopeless returns the reason why an event becomes a dead letter without another attempt, or nil.
func (l *Ledger) hopeless(i *storage.Item, charged bool) error {
	if err := i.Fault(); err != nil {
		return err
	}
	if i.Interrupted && !charged && l.spentAll(i.Attempts) {
		return errUnfinished // it has ended a relay at every attempt
	}
	return nil
}

func (l *Ledger) spentAll(attempts int32) bool {
	return l.MaxAttempts > 0 && attempts >= l.MaxAttempts
}
