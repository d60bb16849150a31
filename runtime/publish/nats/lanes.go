package outboxnats

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// delivery is a message that the subscriber has neither acknowledged nor handed back.
type delivery struct {
	jetstream.Msg
	message    *outbox.Message
	sequence   uint64 // in the stream
	deliveries uint64 // this one included
}

func bySequence(a, b *delivery) int { return cmp.Compare(a.sequence, b.sequence) }

// laneKey is a key, or, for a message without one, its sequence in the stream.
type laneKey struct {
	key      string
	sequence uint64
}

func (d *delivery) lane() laneKey {
	if d.message.Key == "" {
		return laneKey{sequence: d.sequence}
	}
	return laneKey{key: d.message.Key}
}

// lane holds the deliveries of one key.
type lane struct {
	queue   []*delivery // by sequence
	current *delivery   // being handled
	// awaited is the sequence of a message that was handed back and has to come again before its
	// successors go on; 0 for none. Another version of the same fact does not wait for it: it may
	// be the one that the consumer knows.
	awaited      uint64
	awaitedID    outbox.ID
	awaitedUntil time.Time
}

// lanes handle the deliveries of different keys concurrently, and those of one key in the order of the stream.
type lanes struct {
	handle  func(*delivery) (again time.Duration)
	ackWait time.Duration
	limit   int           // of deliveries that wait for nothing but a free slot
	slots   chan struct{} // one for each handler that may run
	freed   chan struct{} // has an element where there may be room
	running sync.WaitGroup

	stopped chan struct{} // closed once nothing more is to be begun
	// orphaned is set once the consumer is gone: an answer might now reach another message, of a new stream or consumer of that name.
	orphaned atomic.Bool

	mu    sync.Mutex
	byKey map[laneKey]*lane
	deaf  bool      // the last pull was not answered
	heard time.Time // when the last one that was answered began
}

func newLanes(concurrency int, ackWait time.Duration, handle func(*delivery) time.Duration) *lanes {
	return &lanes{
		handle: handle, ackWait: ackWait, limit: 4 * concurrency,
		slots: make(chan struct{}, concurrency), freed: make(chan struct{}, 1), stopped: make(chan struct{}),
		byKey: map[laneKey]*lane{},
	}
}

func (l *lanes) isStopped() bool {
	select {
	case <-l.stopped:
		return true
	default:
		return false
	}
}

func (l *lanes) add(d *delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isStopped() {
		l.handBack(d)
		return
	}
	at := l.byKey[d.lane()]
	if at == nil {
		at = &lane{}
		l.byKey[d.lane()] = at
	}
	i, _ := slices.BinarySearchFunc(at.queue, d, bySequence)
	at.queue = slices.Insert(at.queue, i, d)
	l.advance(at, d.lane())
}

// advance starts the lane's next delivery where nothing stands in its way. The caller holds mu.
func (l *lanes) advance(at *lane, key laneKey) {
	switch {
	case at.current != nil || l.isStopped():
	case len(at.queue) == 0:
		if at.awaited == 0 {
			delete(l.byKey, key)
		}
	case at.awaited == 0 || at.queue[0].sequence <= at.awaited ||
		at.queue[0].message.ID == at.awaitedID:
		at.current, at.queue = at.queue[0], at.queue[1:]
		l.running.Go(func() { l.run(at, key) })
	}
}

func (l *lanes) run(at *lane, key laneKey) {
	select {
	case l.slots <- struct{}{}:
		again := l.handle(at.current)
		<-l.slots
		l.finish(at, key, again)
	case <-l.stopped:
		l.handBack(at.current)
	}
}

// handBack has a message delivered again once this subscriber's last pull has ended, which would get it otherwise. Where that fails, it
// comes after AckWait.
func (l *lanes) handBack(d *delivery) {
	if !l.orphaned.Load() {
		_ = d.NakWithDelay(pullWait)
	}
}

func (l *lanes) finish(at *lane, key laneKey, again time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch done := at.current.sequence; {
	case again > 0 && key.key != "":
		at.awaited, at.awaitedID, at.awaitedUntil = done, at.current.message.ID,
			time.Now().Add(again+l.ackWait)
	case done == at.awaited:
		at.awaited = 0
	}
	at.current = nil
	l.advance(at, key)
	l.signal()
}

func (l *lanes) signal() {
	select {
	case l.freed <- struct{}{}:
	default:
	}
}

// waitForRoom returns how many more deliveries to ask for, or 0 once ctx has ended. Those that wait for their predecessor do not
// count, or one key that fails would stop all others; MaxAckPending bounds them.
func (l *lanes) waitForRoom(ctx context.Context) int {
	for ctx.Err() == nil {
		if room := l.room(); room > 0 {
			return room
		}
		select {
		case <-ctx.Done():
		case <-l.freed:
		}
	}
	return 0
}

func (l *lanes) room() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	room := l.limit
	for _, at := range l.byKey {
		if at.current != nil {
			room -= 1 + len(at.queue)
		}
	}
	return room
}

// heartbeats tells the broker three times per AckWait what is still in progress, until ctx ends.
func (l *lanes) heartbeats(ctx context.Context) {
	ticker := time.NewTicker(max(l.ackWait/3, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			l.heartbeat()
		}
	}
}

// pulled notes whether the broker answered a pull. After a silence, what is awaited may need another AckWait to come.
func (l *lanes) pulled(asked time.Time, answered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !answered {
		l.deaf = true
		return
	}
	for _, at := range l.byKey {
		if until := time.Now().Add(l.ackWait); l.deaf && at.awaited != 0 && at.awaitedUntil.Before(until) {
			at.awaitedUntil = until
		}
	}
	l.deaf, l.heard = false, asked
}

// heartbeat also lets lanes go on whose awaited message is overdue, though a pull could have brought it: another subscriber may have had
// it.
func (l *lanes) heartbeat() {
	if l.orphaned.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, at := range l.byKey {
		for _, d := range at.queue {
			_ = d.InProgress() // else it comes again, as a duplicate
		}
		if at.current != nil {
			_ = at.current.InProgress()
		}
		if at.awaited != 0 && l.heard.After(at.awaitedUntil) {
			at.awaited = 0
			l.advance(at, key)
		}
	}
}

// stop begins nothing more, and hands back what waits.
func (l *lanes) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isStopped() {
		return
	}
	close(l.stopped)
	for _, at := range l.byKey {
		for _, d := range at.queue {
			l.handBack(d)
		}
		at.queue = nil
	}
}
