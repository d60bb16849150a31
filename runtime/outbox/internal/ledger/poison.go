package ledger

import (
	"errors"

	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

var errUnfinished = errors.New("the relay ended during the last attempt, as during those before")

// Suspects returns those items that a vanished relay may have had in flight. Their attempt must be
// charged before it is made. Resumed says that they were read by their keys.
func (l *Ledger) Suspects(items []storage.Item, resumed bool) []*storage.Item {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.anySuspect() {
		return nil
	}
	var out []*storage.Item
	waiting := map[string]bool{}
	for n := range items {
		i := &items[n]
		waiting[i.Key] = waiting[i.Key] || i.NotDue && i.Key != ""
		if waiting[i.Key] || !l.suspect(i, resumed) {
			continue
		}
		l.shards[i.Shard].suspects--
		out = append(out, i)
	}
	return out
}

func (l *Ledger) suspect(i *storage.Item, resumed bool) bool {
	s := l.shards[i.Shard]
	if s == nil || s.suspects <= 0 || i.Seq > s.suspectSeq || i.Interrupted || i.NotDue ||
		s.flight[i.Seq] != nil {
		return false
	}
	lane := s.lanes[i.Key]
	return resumed || !lane.skips() || lane.head == i.Seq
}

// anySuspect reports whether a shard has events left to charge.
func (l *Ledger) anySuspect() bool {
	for _, s := range l.shards {
		if s.suspects > 0 {
			return true
		}
	}
	return false
}

// hopeless returns why an event is a dead letter without another attempt, or nil.
func (l *Ledger) hopeless(i *storage.Item, charged bool) error {
	if err := i.Fault(); err != nil {
		return err
	}
	if i.Interrupted && !charged && l.spentAll(i.Attempts) {
		return errUnfinished // it has ended its relay once too often
	}
	return nil
}

func (l *Ledger) spentAll(attempts int32) bool {
	return l.MaxAttempts > 0 && attempts >= l.MaxAttempts
}
