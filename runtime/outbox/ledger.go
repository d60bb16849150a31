package outbox

import (
	"log/slog"
	"math"
	"sync"
	"time"
)

// ledger is what one relay knows, in memory, of the shards it owns: how far each has been read,
// what is in flight, and which keys are held back. But for what it logs it does no I/O, and it is
// safe for concurrent use; a relay that starts afresh starts with a new one.
//
// An event in flight has been accepted from a read and not been settled yet. Those of one key form a lane, of which one is
// with a worker at a time; an event without a key has a lane to itself. A lane whose head has failed is held: what it had
// queued is dropped, what is read later is skipped, and of both only the first seq is remembered. So a key that is held
// costs no memory however much piles up behind it, and the others none of their time.
type ledger struct {
	maxAttempts            int32 // 0: no limit
	maxEvents, maxBytes    int
	backoffMin, backoffMax time.Duration
	workersWanted          int    // as long as all topics answer
	share                  int    // workers for a topic that does not
	hire                   func() // begins another worker
	logger                 *slog.Logger

	mu     sync.Mutex
	wake   sync.Cond // a lane became ready, a topic changed, or the ledger closed
	closed bool

	workers, idleWorkers int
	watched              bool // a timer will look for silent topics

	horizon   horizon
	shards    map[int32]*shard
	ready     fifo // lanes whose head may be published
	lone      fifo // the same, where an event may end the process: one at a time
	loneOut   bool // such a one is with a worker
	resume    []*lane
	rechecks  []*lane // the same, if only the head is to be looked up
	topics    map[string]*topic
	stalled   []*topic // those with lanes that wait
	changes   []change // to be logged
	gaveUp    bool     // it was logged that the publisher has given up for good
	rechecked time.Time

	// The shards are read again from their beginning, now and then and if there is reason to.
	wanted  bool      // there is
	rewound time.Time // when they were last
	vain    int       // events read since then, and left alone: what it costs to do it again
	acked   bool      // something was published since then
	byKey   int       // keys read by themselves since then

	inFlight int           // events
	bytes    int           // of their payloads
	done     []*event      // published, or failed: to be settled
	toSettle chan struct{} // capacity 1: done has something
	progress chan struct{} // capacity 1: there may be more to read
}

// shard is an owned shard.
type shard struct {
	Ownership
	floor   int64 // exclusive: behind it the next read begins
	top     int64 // the highest seq seen
	flight  map[int64]*event
	skipped map[int64]struct{} // seen behind the floor, and left alone
	passed  map[int64]string   // due, but behind their key's head: the key of each
	blocked map[int64]string   // due, but of a topic that does not answer: the topic of each
	unheard map[int64]int      // attempts in a row without an answer that were not charged
	lanes   map[string]*lane
	largest int  // payload seen
	recent  int  // largest payload of the last read
	busy    bool // the last read was cut off: there is more
	leaving bool

	// Of a shard whose owner vanished, events up to suspectSeq are charged before they are published, as many as could have
	// been in flight.
	suspectSeq int64
	suspects   int
}

// lane is the events of one key in order, or a single one without a key.
type lane struct {
	shard    *shard
	key      string
	queue    []*event // the first is next, or with a worker
	out      bool     // the first is with a worker
	flying   int      // events in flight: queued, with a worker, or not settled yet
	back     int      // those of them that stay in the outbox, and are not settled yet
	head     int64    // the event that holds back the lane; 0 where none does
	next     int64    // the first event that was skipped meanwhile; 0 where none was
	recheck  bool     // only its head is to be looked up
	parked   bool     // its topic cannot be reached: it is not resumed before the ledger rewinds
	resuming bool     // it is in ledger.resume
}

// event is an event in flight.
type event struct {
	*Message
	lane              *lane
	taken             bool // by a worker
	lone              bool // no other of its kind may be with a worker until it is settled
	charged           bool // Attempts counts the coming attempt already
	probe             bool // it is tried although its topic could not be reached of late
	began             time.Time
	answers, timeouts uint64 // of its topic when the attempt began
	verdict           verdict
	err               error
	delay             time.Duration // until it is tried again; 0: as its attempts ask for
}

// waits reports whether the event is in flight, and no worker has begun it.
func (e *event) waits() bool { return !e.taken && e.lane.shard.flight[e.Seq] == e }

// fifo is a queue of lanes.
type fifo []*lane

func (q *fifo) push(l *lane) { *q = append(*q, l) }

func (q *fifo) pop() *lane {
	for len(*q) > 0 {
		l := (*q)[0]
		(*q)[0] = nil
		*q = (*q)[1:]
		if len(l.queue) > 0 && l.queue[0].waits() { // else it was dropped while it waited here
			return l
		}
	}
	return nil
}

func newLedger(c Config) *ledger {
	l := &ledger{
		maxEvents: c.MaxInFlight, maxBytes: c.MaxInFlightBytes,
		backoffMin: c.MinRetryDelay, backoffMax: c.MaxRetryDelay,
		workersWanted: min(c.Concurrency, c.MaxInFlight), logger: c.Logger,
		shards: map[int32]*shard{}, topics: map[string]*topic{}, rechecked: time.Now(),
		rewound:  time.Now(),
		toSettle: make(chan struct{}, 1), progress: make(chan struct{}, 1),
	}
	if c.MaxAttempts != Unlimited {
		l.maxAttempts = int32(min(c.MaxAttempts, math.MaxInt32))
	}
	l.share = max(1, l.workersWanted/16)
	l.wake.L = &l.mu
	return l
}

// own adds shards. Suspect ones are given the mark that bounds what their last owner can have had in flight, and how many those
// can have been.
func (l *ledger) own(owned []Ownership, suspectSeq int64, suspects int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range owned {
		s := &shard{
			Ownership: o,
			flight:    map[int64]*event{}, skipped: map[int64]struct{}{},
			passed:  map[int64]string{},
			blocked: map[int64]string{}, unheard: map[int64]int{}, lanes: map[string]*lane{},
			busy: true,
		}
		if o.Suspect {
			s.suspectSeq, s.suspects = suspectSeq, suspects
		}
		l.shards[o.Shard] = s
	}
}

// owned returns the shards of the ledger, those that are being given back among them.
func (l *ledger) owned() []Ownership {
	l.mu.Lock()
	defer l.mu.Unlock()
	owned := make([]Ownership, 0, len(l.shards))
	for _, s := range l.shards {
		owned = append(owned, s.Ownership)
	}
	return owned
}

// kept returns how many shards the ledger has and is not giving back.
func (l *ledger) kept() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.readable())
}

// giveBack marks n shards as leaving: they are read no more, and what is queued of them is dropped.
func (l *ledger) giveBack(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.readable()
	for _, s := range kept[:min(max(0, n), len(kept))] {
		s.leaving = true
		l.dropQueued(s)
	}
}

// dropQueued forgets what no worker has begun.
func (l *ledger) dropQueued(s *shard) {
	for _, e := range s.flight {
		if !e.taken {
			l.drop(e)
		}
	}
	for _, lane := range s.lanes {
		if lane.out {
			lane.queue = lane.queue[:1]
		} else {
			lane.queue = nil
		}
	}
}

// drop forgets an event that no worker has begun. One that was charged already is given its attempt back.
func (l *ledger) drop(e *event) {
	if !e.charged {
		l.forget(e)
		return
	}
	e.taken, e.verdict, e.err = true, untried, errNotTried
	e.lane.back++
	l.done = append(l.done, e)
	l.signalDone()
}

// forget takes an event out of flight.
func (l *ledger) forget(e *event) {
	delete(e.lane.shard.flight, e.Seq)
	e.lane.flying--
	l.inFlight--
	l.bytes -= len(e.Payload)
}

// released returns the leaving shards of which nothing is in flight any more.
func (l *ledger) released() []Ownership {
	l.mu.Lock()
	defer l.mu.Unlock()
	var gone []Ownership
	for _, s := range l.shards {
		if s.leaving && len(s.flight) == 0 {
			gone = append(gone, s.Ownership)
		}
	}
	return gone
}

// disown removes shards that were released.
func (l *ledger) disown(gone []Ownership) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range gone {
		if s := l.shards[o.Shard]; s != nil && s.Fence == o.Fence { // else it has been taken anew
			delete(l.shards, o.Shard)
		}
	}
}

// drain drops everything that no worker has begun, and lets workers end.
func (l *ledger) drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, s := range l.shards {
		s.leaving = true
		l.dropQueued(s)
	}
	l.wake.Broadcast()
}

// idle reports whether nothing can be done now: nothing is in flight, except what waits for an
// unreachable topic, and nothing is to be read again.
func (l *ledger) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := 0
	for _, t := range l.stalled {
		for _, lane := range t.waiting {
			waiting += len(lane.queue)
		}
	}
	return l.inFlight <= waiting && len(l.resume)+len(l.rechecks) == 0 && !l.wanted
}

// signal says that there may be more to read.
func (l *ledger) signal() { ringOnce(l.progress) }

// signalDone says that there is something to settle.
func (l *ledger) signalDone() { ringOnce(l.toSettle) }

func ringOnce(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it will be seen
	}
}
