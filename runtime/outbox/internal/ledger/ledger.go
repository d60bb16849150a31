// Package ledger keeps the state of one relay in memory: how far each of its shards has been read,
// which events are in flight, which keys are held back, and whether each topic answers. It does no
// I/O, and is safe for concurrent use. A relay that restarts begins with a new ledger.
//
// An event is in flight from the time at which a read returned it until it is settled. Events of
// one key form a lane, of which one event is with a worker at a time; an event without a key has a
// lane of its own. If the head of a lane has failed, the lane is held: its queue is dropped, its
// later events are skipped, and only the first seq of these is remembered. So a held key needs
// little memory however many events wait behind its head, and it does not delay other keys.
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
	// Report is called when a circuit breaker opens or closes. It may be nil.
	Report func(TopicChange)
}

// Ledger is the state of one relay. Its methods may be called concurrently.
type Ledger struct {
	Config
	share int    // workers for a topic that does not answer
	hire  func() // starts another worker

	mu     sync.Mutex
	wake   sync.Cond // a lane became ready, a topic changed, or the ledger closed
	closed bool

	workers, idleWorkers int
	watched              bool // a timer is set that checks for topics that do not answer

	watermark   int64 // every event up to it is visible or will never be
	watching    bool  // the store wants to be asked after the next read in any case
	shards      map[int32]*shard
	isolatedOut bool // a poison candidate is with a worker, so no other one may be
	resume      []*lane
	rechecks    []*lane // like resume, for lanes of which only the head is read
	topics      map[string]*topic
	turns       []*topic // topics with lanes that may be tried now, in the order of their turns
	stalled     []*topic // topics with lanes that may not be tried now
	changes     []TopicChange
	gaveUp      bool // it was reported that the publisher has given up for good
	rechecked   time.Time

	// The shards are read again from their start (rewound) at intervals, and on demand.
	rewindWanted bool      // by demand, soon
	rewound      time.Time // last time
	skippedReads int       // events read and skipped since then: the cost of the next rewind
	acked        bool      // an event was acknowledged since then
	byKey        int       // keys read individually since then

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

// ToSettle returns a channel that receives when Unsettled has events to return.
func (l *Ledger) ToSettle() <-chan struct{} { return l.toSettle }

// Progress returns a channel that receives when there may be more to read.
func (l *Ledger) Progress() <-chan struct{} { return l.progress }

// Own adds shards. If the previous owner of a shard has vanished, up to candidates events with a
// seq of at most last are poison candidates: it may have had them in flight.
func (l *Ledger) Own(owned []storage.Ownership, last int64, candidates int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range owned {
		s := newShard(o)
		if o.Suspect {
			s.lastCandidate, s.candidates = last, candidates
		}
		l.shards[o.Shard] = s
	}
	l.signal()
}

// Owned returns the ledger's shards, including those that are being given back.
func (l *Ledger) Owned() []storage.Ownership {
	l.mu.Lock()
	defer l.mu.Unlock()
	owned := make([]storage.Ownership, 0, len(l.shards))
	for _, s := range l.shards {
		owned = append(owned, s.Ownership)
	}
	return owned
}

// Kept returns the number of owned shards that are not being given back.
func (l *Ledger) Kept() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.readable())
}

// GiveBack marks n shards as leaving: they are no longer read, and their queued events are dropped.
func (l *Ledger) GiveBack(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.readable()
	for _, s := range kept[:min(max(0, n), len(kept))] {
		s.leaving = true
		l.dropQueued(s)
	}
}

// Released returns the leaving shards that have no events in flight any more.
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
		// otherwise it has been taken again
		if s := l.shards[o.Shard]; s != nil && s.Fence == o.Fence {
			delete(l.shards, o.Shard)
		}
	}
}

// Drain drops all events that no worker has taken, and closes the ledger, so that workers end.
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

// Idle reports whether nothing can be done now: no event is in flight, except those that wait for
// an unreachable topic, and nothing has to be read again.
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
	return l.inFlight <= waiting && len(l.resume)+len(l.rechecks) == 0 && !l.rewindWanted
}

// Figures describe a ledger.
type Figures struct {
	Shards   int  // owned
	InFlight int  // events
	Held     int  // keys that wait for a retry
	Open     bool // the circuit breaker of a topic is open
}

// Figures returns the present figures.
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

// dropQueued drops the events of a shard that no worker has taken.
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

// drop forgets an event that no worker has taken. If its attempt was charged already, settling
// takes the charge back.
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

// signal notifies Progress.
func (l *Ledger) signal() { notify(l.progress) }

// signalDone notifies ToSettle.
func (l *Ledger) signalDone() { notify(l.toSettle) }

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // a notification is pending
	}
}

// report passes changes of topics to Report. It releases the lock during the calls.
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
