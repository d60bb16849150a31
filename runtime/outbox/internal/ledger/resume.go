package ledger

import (
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

const (
	resumeLimit = 256 // limit of a read of a key that was held
	resumeKeys  = 64  // keys read at once
	// maxResumed is how many keys are read individually between two rewinds: each of these reads
	// passes over all pending events of the shard.
	maxResumed = 256
)

// Resumption is a read of keys that are no longer held.
type Resumption struct {
	Keys  []storage.KeyRead
	lanes []*lane // of the keys
}

// Resumable returns keys that are no longer held, and which of their events to read.
func (l *Ledger) Resumable() (r Resumption) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rewindWanted && l.tooManyByKey() {
		return r
	}
	l.resume = l.resumeFrom(l.resume, &r)
	l.byKey += len(r.Keys)
	l.rechecks = l.resumeFrom(l.rechecks, &r)
	return r
}

// tooManyByKey reports whether a rewind costs less than reading the keys individually.
func (l *Ledger) tooManyByKey() bool {
	return len(l.resume) > 0 && l.byKey+len(l.resume) > maxResumed
}

// resumeFrom adds lanes of a queue to r, and returns those that must stay in the queue.
func (l *Ledger) resumeFrom(queue []*lane, r *Resumption) []*lane {
	rest := queue[:0]
	for _, lane := range queue {
		switch s := lane.shard; {
		case s.leaving || l.shards[s.Shard] != s || lane.head != 0 || lane.next == 0 || lane.parked:
			lane.resuming, lane.recheck = false, false
		case len(r.Keys) == resumeKeys || lane.inFlight > 0:
			// Events that are not settled yet could be read a second time.
			rest = append(rest, lane)
		default:
			limit := l.room(s, resumeKeys, resumeLimit)
			if lane.recheck {
				limit = 1
			}
			r.lanes = append(r.lanes, lane)
			r.Keys = append(r.Keys, storage.KeyRead{
				Shard: s.Shard, Key: lane.key, From: lane.next, To: s.top, Limit: limit,
			})
			rest = append(rest, lane) // until AcceptResumed has read all of it
		}
	}
	clear(queue[len(rest):])
	return rest
}

// AcceptResumed puts the items of a read of keys in flight. Items of one key are adjacent and
// ascending.
func (l *Ledger) AcceptResumed(
	r Resumption, items []storage.Item, charged map[int64]bool, now time.Time,
) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, lane := range r.lanes {
		n, key := 0, r.Keys[i]
		for n < len(items) && items[n].Shard == key.Shard && items[n].Key == key.Key {
			n++
		}
		if s := lane.shard; !s.leaving && l.shards[s.Shard] == s {
			l.resumeLane(lane, items[:n], n == key.Limit, charged, now)
		}
		items = items[n:]
	}
}

func (l *Ledger) resumeLane(
	lane *lane, items []storage.Item, more bool, charged map[int64]bool, now time.Time,
) {
	lane.recheck = false
	for n := range items {
		i := &items[n]
		lane.next = i.Seq + 1
		switch {
		case l.full(i.Topic, now):
			lane.park(i.Seq)
			return
		case i.NotDue:
			lane.head = i.Seq
			if !more && n == len(items)-1 {
				lane.next = 0
			}
			return
		}
		l.dispatch(lane, i, charged[i.Seq])
	}
	if !more {
		lane.next = 0
		l.dispose(lane)
	}
}

// RecheckHeads has the heads of held lanes read again once per sweepPeriod: an operator or another
// process may have removed them or made them due.
func (l *Ledger) RecheckHeads(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.rechecked) < sweepPeriod {
		return
	}
	l.rechecked = now
	for _, s := range l.shards {
		for _, lane := range s.lanes {
			if lane.head != 0 && lane.inFlight == 0 {
				lane.skip(lane.head)
				lane.head, lane.recheck = 0, !lane.resuming
				l.resumeLater(lane)
			}
		}
	}
}
