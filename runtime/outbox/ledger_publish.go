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

// take waits for an event to publish; nil is the end.
func (l *ledger) take() *event {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closed {
		if e := l.next(time.Now()); e != nil {
			return e
		}
		l.wake.Wait()
	}
	return nil
}

func (l *ledger) next(now time.Time) *event {
	if !l.breaker.ready(now) {
		return nil
	}
	var lane *lane
	if !l.loneOut {
		lane = l.lone.pop()
		l.loneOut = lane != nil
	}
	lone := lane != nil
	if lane == nil {
		lane = l.ready.pop()
	}
	if lane == nil {
		return nil
	}
	l.breaker.begin()
	lane.out = true
	e := lane.queue[0]
	e.taken, e.lone, e.since = true, lone, l.successes
	return e
}

// finish takes in the end of an attempt. A time-out is the broker's trouble where nothing else has got through meanwhile.
func (l *ledger) finish(e *event, err error, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.lane.out = false
	if errors.Is(err, errNotTried) {
		l.conclude(e, untried, err)
		return
	}
	unreachable := errors.Is(err, ErrUnreachable) || errors.Is(err, context.DeadlineExceeded) && e.since == l.successes
	if !unreachable && l.breaker.reached() {
		l.wake.Broadcast()
	}
	switch {
	case err == nil:
		l.successes++
		l.conclude(e, published, nil)
	case unreachable && l.breaker.failed(now, l.wakeLater):
		l.putBack(e)
	case unreachable:
		if e.charged {
			e.Attempts--
		}
		l.conclude(e, retry, err)
	case errors.Is(err, ErrPermanent) || e.spent() >= l.maxAttempts:
		e.Attempts = e.spent()
		l.conclude(e, dead, err)
	default:
		e.Attempts = e.spent()
		l.conclude(e, retry, err)
	}
}

// spent returns the event's attempts with this one.
func (e *event) spent() int32 {
	if e.charged {
		return e.Attempts
	}
	return e.Attempts + 1
}

// putBack leaves an event at the head of its lane, to be tried again once the broker can be reached.
func (l *ledger) putBack(e *event) {
	e.taken = false
	if e.lone {
		l.loneOut = false
	}
	if e.lane.shard.leaving || l.closed {
		l.dropQueued(e.lane.shard)
		l.signalDone()
		return
	}
	l.enqueue(e.lane)
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
	for _, e := range lane.queue {
		lane.skip(e.Seq)
		lane.shard.skip(e.Seq)
		l.forget(e)
	}
	lane.queue = nil
}

// dispose forgets a lane of which there is nothing to know.
func (l *ledger) dispose(lane *lane) {
	if lane.key != "" && !lane.held() && !lane.out && len(lane.queue) == 0 {
		delete(lane.shard.lanes, lane.key)
	}
}

// unsettled waits for events to settle, and returns them with the shards they are of; none is the end.
func (l *ledger) unsettled() []*event {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.done
	l.done = nil
	return events
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

// wakeLater wakes the workers after d.
func (l *ledger) wakeLater(d time.Duration) {
	time.AfterFunc(d, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.wake.Broadcast()
		l.signal()
	})
}
