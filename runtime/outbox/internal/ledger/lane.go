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
	Delay   time.Duration // until it is tried again; 0: computed from its attempts

	lane     *lane
	taken    bool // a worker has it, or had it
	isolated bool // no other poison candidate may be with a worker until it is settled
	charged  bool // Attempts already includes the coming attempt
}

// Verdict says how an event is settled.
type Verdict uint8

const (
	Published Verdict = iota // the broker has acknowledged it
	Retried                  // its key is held until the next attempt
	Dead                     // a dead letter
	Untried                  // there was no attempt: a charge is taken back
)

// Ownership returns the ownership of the event's shard when the event was read.
func (e *Event) Ownership() storage.Ownership { return e.lane.shard.Ownership }

// Spent returns the number of the event's attempts, including the current one.
func (e *Event) Spent() int32 {
	if e.charged {
		return e.Attempts
	}
	return OneMore(e.Attempts)
}

// OneMore returns attempts + 1, or attempts if it is the largest int32.
func OneMore(attempts int32) int32 {
	if attempts == math.MaxInt32 {
		return attempts
	}
	return attempts + 1
}

// waits reports whether the event is in flight and no worker has taken it.
func (e *Event) waits() bool { return !e.taken && e.lane.shard.flight[e.Seq] == e }

// lane has the events of one key in order, or a single event without a key.
type lane struct {
	shard    *shard
	key      string
	queue    []*Event // the first one is next, or with a worker
	out      bool     // the first event of queue is with a worker
	inFlight int      // events in flight: queued, with a worker, or not settled yet
	back     int      // events in flight that will stay in the outbox once they are settled
	head     int64    // the event that holds back the lane; 0 if none does
	next     int64    // the first event that was skipped; 0 if none was
	recheck  bool     // only its head is to be read
	parked   bool     // its topic cannot be reached: it is not resumed before the ledger rewinds
	resuming bool     // it is in Ledger.resume or Ledger.rechecks
}

// laneState says what a lane waits for. It is derived from the lane's fields, the first match
// first.
type laneState uint8

const (
	laneIdle       laneState = iota // no event of it is known
	laneHeld                        // its head waits for a retry, and later events are skipped
	laneParked                      // its topic cannot be reached, and later events are skipped
	laneResuming                    // it is no longer held: its skipped events must be read
	lanePublishing                  // its first event is with a worker
	laneReady                       // its first event waits for a worker
	laneSettling                    // its events in flight have to be settled
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

// heads reports whether i is the head that holds the lane, is due, and no event was skipped after
// it.
func (l *lane) heads(i *storage.Item) bool {
	return l != nil && l.head == i.Seq && l.next == 0 && !i.NotDue
}

// skip notes that an event of the lane was skipped, and keeps the lowest seq.
func (l *lane) skip(seq int64) {
	if l.next == 0 || seq < l.next {
		l.next = seq
	}
}

// park skips an event until the next rewind.
func (l *lane) park(seq int64) {
	l.skip(seq)
	l.parked = true
}

// fifo is a queue of lanes.
type fifo []*lane

func (q *fifo) push(l *lane) { *q = append(*q, l) }

// pop removes and returns the first lane that t still offers, and whose head was interrupted or
// not, as the queue is for. It drops other lanes: their events were dropped while they waited, and
// what came since is in the queue where it belongs.
func (q *fifo) pop(t *topic, interrupted bool) *lane {
	for len(*q) > 0 {
		l := (*q)[0]
		(*q)[0] = nil
		*q = (*q)[1:]
		if t.offers(l) && l.queue[0].Interrupted == interrupted {
			return l
		}
	}
	return nil
}

// release ends the hold of a lane if head is the event that holds it. Events that were skipped
// meanwhile are read next.
func (l *Ledger) release(lane *lane, head int64) {
	if lane.head != head {
		return
	}
	lane.head = 0
	if lane.next != 0 {
		l.resumeLater(lane)
	}
}

// resumeLater has the skipped events of a lane read.
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

// hold makes a failed event the head of its lane, and drops the queued events.
func (l *Ledger) hold(lane *lane, head int64) {
	if lane.head != 0 && lane.head != head {
		lane.skip(lane.head) // the previous head waits behind this one
	}
	lane.head = head
	l.dropLane(lane)
}

// dropLane drops the queued events of a lane, to be read again.
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

// dispose deletes a lane without any state.
func (l *Ledger) dispose(lane *lane) {
	if lane.key != "" && !lane.skips() && !lane.out && len(lane.queue) == 0 {
		delete(lane.shard.lanes, lane.key)
	}
}
