package subscribe

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// laneKey is a key, or, for a message without one, its sequence.
type laneKey struct {
	key      string
	sequence uint64
}

func laneOf(d *Delivery) laneKey {
	if d.Message.Key == "" {
		return laneKey{sequence: d.Sequence}
	}
	return laneKey{key: d.Message.Key}
}

// lane holds the deliveries of one key.
type lane struct {
	queue   []*Delivery // by sequence
	current *Delivery   // being handled
	awaited *awaited    // nil for none
}

// awaited is an event that was nacked, and has to be delivered again before its successors are
// handled.
type awaited struct {
	sequence uint64
	id       outbox.ID // another version of the same event does not wait for it
	until    time.Time // when it is overdue
}

// next reports whether the first delivery of the queue may be handled.
func (at *lane) next() bool {
	if at.current != nil || len(at.queue) == 0 {
		return false
	}
	first := at.queue[0]
	return at.awaited == nil || first.Sequence <= at.awaited.sequence ||
		first.Message.ID == at.awaited.id
}

// lanes handle the deliveries of different keys concurrently, and those of one key in order. They
// belong to one call of Run.
type lanes struct {
	handle  func(*Delivery) (delay time.Duration) // until it comes again; 0 if it does not
	ackWait time.Duration
	limit   int           // of deliveries that wait for nothing but a free slot
	slots   chan struct{} // one for each handler that may run
	freed   chan struct{} // has an element if there may be room
	running sync.WaitGroup

	stopped chan struct{} // closed once nothing more is to be begun
	// consumerGone is set once no answer may be sent: it might reach another message, of a new
	// consumer of that name.
	consumerGone atomic.Bool

	mu           sync.Mutex
	byKey        map[laneKey]*lane
	fetchStalled bool      // the last fetch was not answered
	lastAnswered time.Time // when the last fetch that was answered began
}

func newLanes(
	concurrency int, ackWait time.Duration, handle func(*Delivery) time.Duration,
) *lanes {
	return &lanes{
		handle: handle, ackWait: ackWait, limit: 4 * concurrency,
		slots: make(chan struct{}, concurrency), freed: make(chan struct{}, 1),
		stopped: make(chan struct{}), byKey: map[laneKey]*lane{},
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

func (l *lanes) add(ctx context.Context, d *Delivery) {
	if !l.enqueue(ctx, d) {
		l.release(ctx, d)
	}
}

// enqueue reports whether the delivery was taken: nothing is, once the lanes are stopped.
func (l *lanes) enqueue(ctx context.Context, d *Delivery) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isStopped() {
		return false
	}
	key := laneOf(d)
	at := l.byKey[key]
	if at == nil {
		at = &lane{}
		l.byKey[key] = at
	}
	i, _ := slices.BinarySearchFunc(at.queue, d.Sequence, func(queued *Delivery, s uint64) int {
		return cmp.Compare(queued.Sequence, s)
	})
	at.queue = slices.Insert(at.queue, i, d)
	l.advance(ctx, at, key)
	return true
}

// advance starts the lane's next delivery if nothing blocks it, and forgets a lane that
// holds nothing. The caller holds mu.
func (l *lanes) advance(ctx context.Context, at *lane, key laneKey) {
	switch {
	case l.isStopped():
	case at.next():
		at.current, at.queue = at.queue[0], at.queue[1:]
		l.running.Go(func() { l.run(ctx, at, key) })
	case at.current == nil && len(at.queue) == 0 && at.awaited == nil:
		delete(l.byKey, key)
	}
}

func (l *lanes) run(ctx context.Context, at *lane, key laneKey) {
	if !l.takeSlot() {
		l.release(ctx, at.current)
		return
	}
	delay := l.handle(at.current)
	<-l.slots
	l.finish(ctx, at, key, delay)
}

// takeSlot waits for a free slot. It reports false, and has taken none, once the lanes are stopped.
func (l *lanes) takeSlot() bool {
	select {
	case l.slots <- struct{}{}:
	case <-l.stopped:
		return false
	}
	if l.isStopped() { // the end of a handler may free a slot after the stop
		<-l.slots
		return false
	}
	return true
}

func (l *lanes) finish(ctx context.Context, at *lane, key laneKey, delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch done := at.current; {
	case delay > 0 && key.key != "":
		at.awaited = &awaited{done.Sequence, done.Message.ID, time.Now().Add(delay + l.ackWait)}
	case at.awaited != nil && done.Sequence == at.awaited.sequence:
		at.awaited = nil
	}
	at.current = nil
	l.advance(ctx, at, key)
	select {
	case l.freed <- struct{}{}:
	default:
	}
}

// waitForRoom returns how many more deliveries to ask for, or 0 once ctx has ended. Deliveries that
// wait for their predecessor do not count, or one key that fails would stop all others; the broker
// bounds how many there are.
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

// noteFetch notes whether the broker answered a fetch. After a silence, what is awaited may need
// another AckWait to come.
func (l *lanes) noteFetch(began, ended time.Time, answered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !answered {
		l.fetchStalled = true
		return
	}
	until := ended.Add(l.ackWait)
	for _, at := range l.byKey {
		if l.fetchStalled && at.awaited != nil && at.awaited.until.Before(until) {
			at.awaited.until = until
		}
	}
	l.fetchStalled, l.lastAnswered = false, began
}

// beginHeartbeats extends what is held three times per AckWait, until the returned function is
// called. A broker without an AckWait needs none, and brings back whatever was handed back.
func (l *lanes) beginHeartbeats(ctx context.Context) (end func()) {
	if l.ackWait == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var beating sync.WaitGroup
	beating.Go(func() {
		ticker := time.NewTicker(max(l.ackWait/3, time.Millisecond))
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				l.extend(ctx)
				l.passOverdue(ctx)
			}
		}
	})
	return func() {
		cancel()
		beating.Wait()
	}
}

// extend tells the broker what is still in progress. What waits in a queue would otherwise come
// again, as a duplicate.
func (l *lanes) extend(ctx context.Context) {
	for _, d := range l.held() {
		if l.consumerGone.Load() {
			return
		}
		_ = d.Extend(ctx) // if it fails, the message comes again, which does no harm
	}
}

func (l *lanes) held() (all []*Delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range l.byKey {
		all = append(all, at.queue...)
		if at.current != nil {
			all = append(all, at.current)
		}
	}
	return all
}

// passOverdue unblocks lanes whose awaited event is overdue although a fetch could have brought
// it: another member may have had it.
func (l *lanes) passOverdue(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, at := range l.byKey {
		if at.awaited != nil && l.lastAnswered.After(at.awaited.until) {
			at.awaited = nil
			l.advance(ctx, at, key)
		}
	}
}

// stop begins nothing more, and releases what waits.
func (l *lanes) stop(ctx context.Context) {
	for _, d := range l.close() {
		l.release(ctx, d)
	}
}

// close returns what waited. It returns nothing when it is called again.
func (l *lanes) close() (waiting []*Delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isStopped() {
		return nil
	}
	close(l.stopped)
	for _, at := range l.byKey {
		waiting = append(waiting, at.queue...)
		at.queue = nil
	}
	return waiting
}

// release nacks a delivery that no handler has begun. If that fails, the message comes
// after AckWait.
func (l *lanes) release(ctx context.Context, d *Delivery) {
	if !l.consumerGone.Load() {
		_ = d.Release(ctx)
	}
}
