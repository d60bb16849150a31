package outbox

import (
	"context"
	"errors"
	"time"
)

// verdict is what becomes of an event whose attempt has ended.
type verdict uint8

const (
	published verdict = iota
	retry             // its key is held until the next attempt
	dead              // a dead letter
	untried           // there was no attempt; one that was charged is given back
)

var (
	errUnfinished = errors.New("the relay ended during the last attempt, as during those before")
	errNotTried   = errors.New("not tried")
)

// enqueue makes a lane's head available to workers.
func (l *ledger) enqueue(lane *lane) {
	if lane.queue[0].Begun {
		l.lone.push(lane)
	} else {
		l.ready.push(lane)
	}
	l.wake.Signal()
}

// take takes in how the attempt at ended went, unless that is nil, and waits for an event to publish; nil is the end.
func (l *ledger) take(ended *event, err error) *event {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if ended != nil {
		l.finish(ended, err, now)
	}
	for ; !l.closed; now = time.Now() {
		if e := l.next(now); e != nil {
			return e
		}
		l.wake.Wait()
	}
	return nil
}

// next returns an event to publish, or nil where none may be published now.
func (l *ledger) next(now time.Time) *event {
	for _, b := range l.topics {
		if b.ready(now) {
			if lane := b.waiting.pop(); lane != nil {
				l.enqueue(lane)
			}
		}
	}
	for lane, lone := l.pop(); lane != nil; lane, lone = l.pop() {
		e := lane.queue[0]
		b := l.topics[e.Topic]
		switch {
		case b.ready(now):
			if b.isOpen() {
				e.probe, b.probing = true, true
			}
			lane.out, e.taken, e.lone, e.since = true, true, lone, l.successes
			l.loneOut = l.loneOut || lone
			return e
		case len(b.waiting) < breakerWaiting:
			b.waiting.push(lane)
		default:
			l.dropLane(lane)
			lane.parked = true
		}
	}
	return nil
}

// pop takes the next lane from those that are ready; lone says that no other such one may be tried meanwhile.
func (l *ledger) pop() (_ *lane, lone bool) {
	if !l.loneOut {
		if lane := l.lone.pop(); lane != nil {
			return lane, true
		}
	}
	return l.ready.pop(), false
}

// finish takes in the end of an attempt. A time-out is the broker's trouble where nothing else has got through meanwhile.
func (l *ledger) finish(e *event, err error, now time.Time) {
	e.lane.out = false
	b := l.topics[e.Topic]
	unreachable := errors.Is(err, ErrUnreachable) || errors.Is(err, context.DeadlineExceeded) && e.since == l.successes
	switch {
	case errors.Is(err, errNotTried):
		if b != nil && e.probe {
			b.probing = false
			l.wake.Signal()
		}
		l.conclude(e, untried, err)
	case unreachable:
		if b == nil {
			b = &breaker{}
			l.topics[e.Topic] = b
		}
		if e.charged {
			e.Attempts--
		}
		e.delay = b.failed(now, e.probe)
		l.wakeLater(e.delay)
		l.conclude(e, retry, err)
	default:
		if b != nil {
			l.reached(e.Topic, b)
		}
		l.answered(e, err)
	}
}

// answered takes in what the broker said.
func (l *ledger) answered(e *event, err error) {
	if err == nil {
		l.successes++
		l.conclude(e, published, nil)
		return
	}
	e.Attempts = e.spent()
	if errors.Is(err, ErrPermanent) || e.Attempts >= l.maxAttempts {
		l.conclude(e, dead, err)
	} else {
		l.conclude(e, retry, err)
	}
}

// reached closes a topic's breaker.
func (l *ledger) reached(topic string, b *breaker) {
	delete(l.topics, topic)
	if !b.isOpen() {
		return
	}
	for lane := b.waiting.pop(); lane != nil; lane = b.waiting.pop() {
		l.enqueue(lane)
	}
	l.rewind = true
	l.signal()
}

// spent returns the event's attempts with this one.
func (e *event) spent() int32 {
	if e.charged {
		return e.Attempts
	}
	return e.Attempts + 1
}

// conclude hands an event over to be settled, and goes on with its lane, or holds it.
func (l *ledger) conclude(e *event, v verdict, err error) {
	e.verdict, e.err = v, err
	l.done = append(l.done, e)
	l.signalDone()
	lane := e.lane
	lane.queue[0] = nil
	lane.queue = lane.queue[1:]
	if (v == retry || v == untried) && lane.key != "" {
		l.hold(lane, e.Seq)
		return
	}
	l.letGo(lane, e.Seq)
	if len(lane.queue) > 0 {
		l.enqueue(lane)
		return
	}
	l.dispose(lane)
}

// letGo ends a lane's hold, if it is by that event: what was skipped meanwhile is to be read.
func (l *ledger) letGo(lane *lane, head int64) {
	if lane.head != head {
		return
	}
	lane.head = 0
	if lane.next != 0 {
		l.resumeLater(lane)
	}
}

// resumeLater has what was skipped of a lane read.
func (l *ledger) resumeLater(lane *lane) {
	if !lane.resuming {
		lane.resuming = true
		l.resume = append(l.resume, lane)
	}
	l.signal()
}

// hold drops what is queued behind a failed event.
func (l *ledger) hold(lane *lane, head int64) {
	if lane.head != 0 && lane.head != head {
		lane.skip(lane.head) // it waits as well, behind this one
	}
	lane.head = head
	l.dropLane(lane)
}

// dropLane drops what is queued of a lane, to be read again.
func (l *ledger) dropLane(lane *lane) {
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
func (l *ledger) dispose(lane *lane) {
	if lane.key != "" && !lane.held() && !lane.out && len(lane.queue) == 0 {
		delete(lane.shard.lanes, lane.key)
	}
}

// unsettled returns the events to settle.
func (l *ledger) unsettled() []*event {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.done
	l.done = nil
	return events
}

// settleLater has an event settled after those that wait to be settled now.
func (l *ledger) settleLater(e *event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = append(l.done, e)
	l.signalDone()
}

// settled takes events out of flight, of which the database knows what became.
func (l *ledger) settled(events []*event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		l.forget(e)
		if e.lone {
			l.loneOut = false
			l.wake.Broadcast()
		}
	}
	l.signal()
}

// wakeLater wakes the workers and the reader after d.
func (l *ledger) wakeLater(d time.Duration) {
	time.AfterFunc(d, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.wake.Broadcast()
		l.signal()
	})
}
