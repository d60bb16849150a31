// Package ledger is what one relay knows, in memory, of the shards it owns: how far each has been
// read, what is in flight, which keys are held back, and how each topic fares. It does no I/O, and
// is safe for concurrent use. A relay that restarts begins with a new ledger.
//
// An event in flight has been accepted from a read and not been settled yet. Those of one key form
// a lane, of which one event is with a worker at a time; an event without a key has a lane to
// itself. A lane whose head has failed is held: what it had queued is dropped, what is read later
// is skipped, and of both only the first seq is remembered. So a key that is held costs no memory
// however much piles up behind it, and the others none of their time.
//
// The files, from the bottom up: topic.go (circuit breakers), lane.go and window.go (a shard's keys
// and positions), poison.go (events that may end the process), ledger.go; then what happens to
// events, in this order: read.go, staff.go, attempt.go, settle.go, resume.go, rewind.go.
package ledger

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// Config says how a ledger works. All fields but Report are required.
type Config struct {
	MaxAttempts   int32 // refusals before an event is a dead letter; 0 for no limit
	MaxEvents     int   // in flight
	MaxBytes      int   // of payloads in flight
	MinRetryDelay time.Duration
	MaxRetryDelay time.Duration
	Workers       int // attempts at once, as long as all topics answer
	BatchSize     int // events of one attempt
	// Report is told how topics fare. It may be nil.
	Report func(TopicChange)
}

// Ledger is one relay's.
type Ledger struct {
	Config
	share int    // workers for a topic that does not answer
	hire  func() // begins another worker

	mu     sync.Mutex
	wake   sync.Cond // a lane became ready, a topic changed, or the ledger closed
	closed bool

	workers, idleWorkers int
	watched              bool // a timer will look for silent topics

	watermark   int64 // every event up to it is decided
	watching    bool  // the watermark is asked for after the next read in any case
	shards      map[int32]*shard
	isolatedOut bool // an event that may end the process is being tried, and no other such one may
	resume      []*lane
	rechecks    []*lane // the same, if only the head is to be looked up
	topics      map[string]*topic
	turns       []*topic // those with lanes that may be tried, in this order
	stalled     []*topic // those with lanes that may not
	changes     []TopicChange
	gaveUp      bool // it was reported that the publisher has given up for good
	rechecked   time.Time

	// The shards are read again from their beginning, now and then and if there is reason to.
	wanted  bool      // there is
	rewound time.Time // when they were last
	vain    int       // events read since then, and left alone: what it costs to do it again
	acked   bool      // something was published since then
	byKey   int       // keys read by themselves since then

	inFlight int      // events
	bytes    int      // of their payloads
	done     []*Event // published, or failed: to be settled
	toSettle chan struct{}
	progress chan struct{}
}

// New returns a ledger without shards.
func New(c Config) *Ledger {
	now := time.Now()
	l := &Ledger{
		Config: c, share: max(1, c.Workers/16),
		shards: map[int32]*shard{}, topics: map[string]*topic{},
		rechecked: now, rewound: now,
		toSettle: make(chan struct{}, 1), progress: make(chan struct{}, 1),
	}
	l.wake.L = &l.mu
	return l
}

// ToSettle receives when Unsettled has something to return.
func (l *Ledger) ToSettle() <-chan struct{} { return l.toSettle }

// Progress receives when there may be more to read than there was.
func (l *Ledger) Progress() <-chan struct{} { return l.progress }

// Own adds shards. Of suspect ones, last is the highest seq that their previous owner can have had
// in flight, and suspects how many events these can have been.
func (l *Ledger) Own(owned []storage.Ownership, last int64, suspects int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range owned {
		s := newShard(o)
		if o.Suspect {
			s.suspectSeq, s.suspects = last, suspects
		}
		l.shards[o.Shard] = s
	}
	l.signal()
}

// Owned returns the ledger's shards, those that are being given back among them.
func (l *Ledger) Owned() []storage.Ownership {
	l.mu.Lock()
	defer l.mu.Unlock()
	owned := make([]storage.Ownership, 0, len(l.shards))
	for _, s := range l.shards {
		owned = append(owned, s.Ownership)
	}
	return owned
}

// Kept returns how many shards the ledger has and is not giving back.
func (l *Ledger) Kept() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.readable())
}

// GiveBack marks n shards as leaving: they are read no more, and what is queued of them is dropped.
func (l *Ledger) GiveBack(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.readable()
	for _, s := range kept[:min(max(0, n), len(kept))] {
		s.leaving = true
		l.dropQueued(s)
	}
}

// Released returns the leaving shards of which nothing is in flight any more.
func (l *Ledger) Released() []storage.Ownership {
	l.mu.Lock()
	defer l.mu.Unlock()
	var gone []storage.Ownership
	for _, s := range l.shards {
		if s.leaving && len(s.flight) == 0 {
			gone = append(gone, s.Ownership)
		}
	}
	return gone
}

// Disown removes shards that were released.
func (l *Ledger) Disown(gone []storage.Ownership) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range gone {
		if s := l.shards[o.Shard]; s != nil && s.Fence == o.Fence { // else it has been taken anew
			delete(l.shards, o.Shard)
		}
	}
}

// Drain drops everything that no worker has begun, and lets workers end.
func (l *Ledger) Drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, s := range l.shards {
		s.leaving = true
		l.dropQueued(s)
	}
	l.wake.Broadcast()
}

// Idle reports whether nothing can be done now: nothing is in flight, except what waits for an
// unreachable topic, and nothing is to be read again.
func (l *Ledger) Idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := 0
	for _, t := range l.stalled {
		for _, lane := range slices.Concat(t.ready, t.isolated) {
			if t.offers(lane) {
				waiting += len(lane.queue)
			}
		}
	}
	return l.inFlight <= waiting && len(l.resume)+len(l.rechecks) == 0 && !l.wanted
}

// Figures describe a ledger.
type Figures struct {
	Shards   int  // owned
	InFlight int  // events
	Held     int  // keys that wait for a retry
	Open     bool // a topic's circuit breaker is
}

// Figures counts.
func (l *Ledger) Figures() Figures {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := Figures{Shards: len(l.shards), InFlight: l.inFlight}
	for _, t := range l.topics {
		f.Open = f.Open || t.isOpen()
	}
	for _, shard := range l.shards {
		for _, lane := range shard.lanes {
			if lane.state() == laneHeld || lane.recheck {
				f.Held++
			}
		}
	}
	return f
}

// dropQueued forgets what no worker has begun.
func (l *Ledger) dropQueued(s *shard) {
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

var errNotTried = errors.New("not tried")

// drop forgets an event that no worker has begun. One that was charged already is given its attempt
// back.
func (l *Ledger) drop(e *Event) {
	if !e.charged {
		l.forget(e)
		return
	}
	e.taken, e.Verdict, e.Err = true, Untried, errNotTried
	e.lane.back++
	l.done = append(l.done, e)
	l.signalDone()
}

// forget takes an event out of flight.
func (l *Ledger) forget(e *Event) {
	delete(e.lane.shard.flight, e.Seq)
	e.lane.inFlight--
	l.inFlight--
	l.bytes -= len(e.Payload)
}

// signal says that there may be more to read.
func (l *Ledger) signal() { notify(l.progress) }

// signalDone says that there is something to settle.
func (l *Ledger) signalDone() { notify(l.toSettle) }

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it will be seen
	}
}

// report hands on how topics have fared. It gives up the lock meanwhile.
func (l *Ledger) report() {
	if len(l.changes) == 0 {
		return
	}
	changes := l.changes
	l.changes = nil
	if l.Report == nil {
		return
	}
	l.mu.Unlock()
	defer l.mu.Lock()
	for _, c := range changes {
		l.Report(c)
	}
}

// wakeLater wakes the workers and the reader after d.
func (l *Ledger) wakeLater(d time.Duration) {
	time.AfterFunc(d, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.wake.Broadcast()
		l.signal()
	})
}
