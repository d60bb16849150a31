package outbox

import (
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

const (
	resumeLimit = 256 // events asked of a key that was held
	resumeKeys  = 64  // keys resumed at once
	// resumeMany is how many keys are read by themselves between two times that all is read again:
	// each of them is a pass over what is pending in its shard.
	resumeMany = 256
)

// resumable returns keys that are held no longer and what to read of them.
func (l *ledger) resumable() (lanes []*lane, reads []storage.KeyRead) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wanted && l.tooManyByKey() {
		return nil, nil
	}
	l.resume, lanes, reads = l.resumeFrom(l.resume, lanes, reads)
	l.byKey += len(reads)
	l.rechecks, lanes, reads = l.resumeFrom(l.rechecks, lanes, reads)
	return lanes, reads
}

// tooManyByKey reports whether it costs more to read the keys that may go on by themselves than to
// read everything again.
func (l *ledger) tooManyByKey() bool {
	return len(l.resume) > 0 && l.byKey+len(l.resume) > resumeMany
}

// resumeFrom adds lanes of a queue to those to be read, and returns which must stay in the queue.
func (l *ledger) resumeFrom(queue, lanes []*lane, reads []storage.KeyRead) ([]*lane, []*lane, []storage.KeyRead) {
	rest := queue[:0]
	for _, lane := range queue {
		switch s := lane.shard; {
		case s.leaving || l.shards[s.Shard] != s || lane.head != 0 || lane.next == 0 || lane.parked:
			lane.resuming, lane.recheck = false, false
		case len(reads) == resumeKeys || lane.flying > 0:
			// What is not settled yet might be read again.
			rest = append(rest, lane)
		default:
			limit := l.room(s, resumeKeys, resumeLimit)
			if lane.recheck {
				limit = 1
			}
			lanes = append(lanes, lane)
			reads = append(reads,
				storage.KeyRead{Shard: s.Shard, Key: lane.key, From: lane.next, To: s.top, Limit: limit})
			rest = append(rest, lane) // until acceptResumed has seen its end
		}
	}
	clear(queue[len(rest):])
	return rest, lanes, reads
}

// acceptResumed takes in what a read of keys returned. Rows of one key are adjacent and ascending.
func (l *ledger) acceptResumed(
	lanes []*lane, reads []storage.KeyRead, rows []storage.Item, charged map[int64]bool, now time.Time,
) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, lane := range lanes {
		n := 0
		for n < len(rows) && rows[n].Shard == reads[i].Shard && rows[n].Key == reads[i].Key {
			n++
		}
		if s := lane.shard; !s.leaving && l.shards[s.Shard] == s {
			l.resumeLane(lane, rows[:n], n == reads[i].Limit, charged, now)
		}
		rows = rows[n:]
	}
}

func (l *ledger) resumeLane(
	lane *lane, rows []storage.Item, more bool, charged map[int64]bool, now time.Time,
) {
	lane.recheck = false
	for i := range rows {
		m := &rows[i]
		lane.next = m.Seq + 1
		switch {
		case l.full(m.Topic, now):
			lane.park(m.Seq)
			return
		case m.NotDue:
			lane.head = m.Seq
			if !more && i == len(rows)-1 {
				lane.next = 0
			}
			return
		}
		l.fly(lane, m, charged[m.Seq])
	}
	if !more {
		lane.next = 0
		l.dispose(lane)
	}
}

// recheckHeads makes held lanes look for their heads, which may have been removed or made due by
// somebody else.
func (l *ledger) recheckHeads(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.rechecked) < sweepPeriod {
		return
	}
	l.rechecked = now
	for _, s := range l.shards {
		for _, lane := range s.lanes {
			if lane.head != 0 && lane.flying == 0 {
				lane.skip(lane.head)
				lane.head, lane.recheck = 0, !lane.resuming
				l.resumeLater(lane)
			}
		}
	}
}
