package ledger

import (
	"math"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// Event is an event in flight.
type Event struct {
	*storage.Item
	Verdict Verdict
	Err     error
	Delay   time.Duration // until it is tried again; 0: as its attempts ask for

	lane     *lane
	taken    bool // by a worker
	isolated bool // no other of its kind may be with a worker until it is settled
	charged  bool // Attempts counts the coming attempt already
}

// Verdict is what becomes of an event whose attempt has ended.
type Verdict uint8

const (
	Published Verdict = iota // the broker has acknowledged it
	Retried                  // its key is held until the next attempt
	Dead                     // a dead letter
	Untried                  // there was no attempt; one that was charged is given back
)

// Ownership returns the event's shard, as it was owned when the event was read.
func (e *Event) Ownership() storage.Ownership { return e.lane.shard.Ownership }

// Spent returns the event's attempts with the one that ends.
func (e *Event) Spent() int32 {
	if e.charged {
		return e.Attempts
	}
	return OneMore(e.Attempts)
}

// OneMore counts an attempt. At the top of its range a count stays there.
func OneMore(attempts int32) int32 {
	if attempts == math.MaxInt32 {
		return attempts
	}
	return attempts + 1
}

// waits reports whether the event is in flight, and no worker has begun it.
func (e *Event) waits() bool { return !e.taken && e.lane.shard.flight[e.Seq] == e }

// lane is the events of one key in order, or a single one without a key.
type lane struct {
	shard    *shard
	key      string
	queue    []*Event // the first is next, or with a worker
	out      bool     // the first is with a worker
	inFlight int      // events in flight: queued, with a worker, or not settled yet
	back     int      // those of them that stay in the outbox, and are not settled yet
	head     int64    // the event that holds back the lane; 0 if none does
	next     int64    // the first event that was skipped meanwhile; 0 if none was
	recheck  bool     // only its head is to be looked up
	parked   bool     // its topic cannot be reached: it is not resumed before the ledger rewinds
	resuming bool     // it is in Ledger.resume or Ledger.rechecks
}

// laneState says what a lane waits for. It follows from the lane's fields: the first that applies.
type laneState uint8

const (
	laneIdle       laneState = iota // nothing is known of it
	laneHeld                        // its head waits for a retry, and later events are skipped
	laneParked                      // its topic cannot be reached, and later events are skipped
	laneResuming                    // it goes on, and what was skipped is to be read first
	lanePublishing                  // its first event is with a worker
	laneReady                       // its first event waits for a worker
	laneSettling                    // what is in flight is to be settled
)

func (l *lane) state() laneState {
	switch {
	case l == nil:
		return laneIdle
	case l.head != 0:
		return laneHeld
	case l.parked:
		return laneParked
	case l.next != 0:
		return laneResuming
	case l.out:
		return lanePublishing
	case len(l.queue) > 0:
		return laneReady
	case l.inFlight > 0:
		return laneSettling
	default:
		return laneIdle
	}
}

// skips reports whether events of the lane are left for later.
func (l *lane) skips() bool {
	switch l.state() {
	case laneHeld, laneParked, laneResuming:
		return true
	default:
		return false
	}
}

// heads reports whether i is what holds back the lane, and may be tried again, while nothing was
// skipped behind it.
func (l *lane) heads(i *storage.Item) bool {
	return l != nil && l.head == i.Seq && l.next == 0 && !i.NotDue
}

// skip remembers the first event that is left for later.
func (l *lane) skip(seq int64) {
	if l.next == 0 || seq < l.next {
		l.next = seq
	}
}

// park leaves an event for when the ledger rewinds.
func (l *lane) park(seq int64) {
	l.skip(seq)
	l.parked = true
}

// fifo is a queue of lanes.
type fifo []*lane

func (q *fifo) push(l *lane) { *q = append(*q, l) }

// pop takes the first lane that a topic offers. Others were dropped while they waited here.
func (q *fifo) pop(t *topic) *lane {
	for len(*q) > 0 {
		l := (*q)[0]
		(*q)[0] = nil
		*q = (*q)[1:]
		if t.offers(l) {
			return l
		}
	}
	return nil
}

// release ends a lane's hold, if it is by that event: what was skipped meanwhile is to be read.
func (l *Ledger) release(lane *lane, head int64) {
	if lane.head != head {
		return
	}
	lane.head = 0
	if lane.next != 0 {
		l.resumeLater(lane)
	}
}

// resumeLater has what was skipped of a lane read.
func (l *Ledger) resumeLater(lane *lane) {
	switch {
	case lane.resuming:
	case lane.recheck:
		l.rechecks = append(l.rechecks, lane)
	default:
		l.resume = append(l.resume, lane)
	}
	lane.resuming = true
	l.signal()
}

// hold drops what is queued behind a failed event.
func (l *Ledger) hold(lane *lane, head int64) {
	if lane.head != 0 && lane.head != head {
		lane.skip(lane.head) // it waits as well, behind this one
	}
	lane.head = head
	l.dropLane(lane)
}

// dropLane drops what is queued of a lane, to be read again.
func (l *Ledger) dropLane(lane *lane) {
	for _, e := range lane.queue {
		if e.Seq != lane.head {
			lane.skip(e.Seq)
		}
		lane.shard.skip(e.Seq)
		l.drop(e)
	}
	lane.queue = nil
}

// dispose forgets a lane of which there is nothing to know.
func (l *Ledger) dispose(lane *lane) {
	if lane.key != "" && !lane.skips() && !lane.out && len(lane.queue) == 0 {
		delete(lane.shard.lanes, lane.key)
	}
}
