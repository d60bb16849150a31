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
	l.push(lane)
	l.call()
}

func (l *ledger) push(lane *lane) {
	if lane.queue[0].Interrupted {
		l.lone.push(lane)
	} else {
		l.ready.push(lane)
	}
}

// call has a worker look for something to publish: one that has nothing to do, or a new one. If all
// are with topics that do not answer, others are found for them by and by.
func (l *ledger) call() {
	switch {
	case l.closed:
	case l.idleWorkers > 0:
		l.wake.Signal()
	case l.workers < l.workersWanted:
		l.hireOne()
	case !l.watched:
		l.watched = true
		time.AfterFunc(silence/2, l.replaceWaiting)
	}
}

func (l *ledger) hireOne() {
	l.workers++
	if l.hire != nil {
		l.hire()
	}
}

// replaceWaiting begins a worker for each one that waits for a silent topic, as far as there is
// work.
func (l *ledger) replaceWaiting() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watched = false
	if l.closed || l.idleWorkers > 0 {
		return
	}
	ready := len(l.ready) + len(l.lone)
	for range min(ready, l.staff(time.Now())-l.workers) {
		l.hireOne()
	}
	if ready > 0 {
		l.call()
	}
}

// staff returns how many workers there may be: those that wait for silent topics do not count.
func (l *ledger) staff(now time.Time) int {
	n := l.workersWanted
	for _, t := range l.topics {
		if t.silent(now) {
			n += t.out
		}
	}
	return n
}

// take takes in how the attempt at ended went, unless that is nil, and waits for an event to
// publish. It returns nil if the worker is to end.
func (l *ledger) take(ended *event, err error) *event {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if ended != nil {
		l.finish(ended, err, now)
		l.tell()
	}
	for ; !l.closed; now = time.Now() {
		if l.workers > l.workersWanted && l.workers > l.staff(now) {
			break
		}
		if e := l.next(now); e != nil {
			l.callMore()
			return e
		}
		l.idleWorkers++
		l.wake.Wait()
		l.idleWorkers--
	}
	l.workers--
	l.callMore()
	return nil
}

// callMore passes on what one worker leaves.
func (l *ledger) callMore() {
	if len(l.ready)+len(l.lone) > 0 {
		l.call()
	}
}

// next returns an event to publish, or nil if none may be published now.
func (l *ledger) next(now time.Time) *event {
	l.release(now)
	for lane, lone := l.pop(); lane != nil; lane, lone = l.pop() {
		e := lane.queue[0]
		t := l.topic(e.Topic)
		switch {
		case t.mayStart(now, l.share):
			if !t.proven && t.out == 0 {
				l.wakeLater(silence) // others of it are tried then
			}
			t.started(e, now)
			lane.out, e.taken, e.lone = true, true, lone
			l.loneOut = l.loneOut || lone
			return e
		case t.isOpen() && len(t.waiting) >= breakerWaiting:
			l.park(t, lane)
		default:
			l.stall(t, lane)
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

// finish takes in the end of an attempt. Silence costs an event no attempt, unless its topic is
// well: it answered others meanwhile, and no other attempt at it ended in silence.
func (l *ledger) finish(e *event, err error, now time.Time) {
	t := l.topic(e.Topic)
	t.out--
	e.lane.out = false
	if e.probe {
		t.probing = false
	}
	unreachable, silent := errors.Is(err, ErrUnreachable), timedOut(err)
	alone := t.answers != e.answers && t.timeouts == e.timeouts
	if silent {
		t.timeouts++
	}
	switch {
	case errors.Is(err, errNotTried):
		l.conclude(e, untried, err)
	case unreachable, silent && !alone:
		l.unanswered(t, e, err, now)
	case silent:
		l.answered(e, err)
	default:
		l.reached(t, e, now)
		l.answered(e, err)
	}
}

// timedOut reports whether an attempt ended since there was no answer, whoever gave up waiting.
func timedOut(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &timeout) && timeout.Timeout() && !errors.Is(err, ErrPermanent)
}

// unanswered puts an event off without charging an attempt: until its topic is tried again, or if
// the topic answers others, for longer each time.
func (l *ledger) unanswered(t *topic, e *event, err error, now time.Time) {
	if e.charged {
		e.Attempts--
	}
	answersOthers := t.answers != e.answers
	if answersOthers {
		s := e.lane.shard
		s.unheard[e.Seq]++
		e.delay = backoff(s.unheard[e.Seq], l.backoffMin, l.backoffMax)
	}
	if !answersOthers || errors.Is(err, ErrUnreachable) {
		wasOpen := t.isOpen()
		e.delay = max(e.delay, t.failed(now, e.probe))
		if t.isOpen() && !wasOpen {
			l.changes = append(l.changes, change{topic: t.name, err: err})
			l.trim(t)
		}
	}
	if errors.Is(err, ErrPublisherClosed) && !l.gaveUp {
		l.gaveUp = true
		l.changes = append(l.changes, change{topic: t.name, err: err, ended: true})
	}
	l.wakeLater(e.delay)
	l.conclude(e, retry, err)
}

// answered takes in what the broker said.
func (l *ledger) answered(e *event, err error) {
	if err == nil {
		l.acked = true
		l.conclude(e, published, nil)
		return
	}
	e.Attempts = e.spent()
	if errors.Is(err, ErrPermanent) || l.spentAll(e.Attempts) {
		l.conclude(e, dead, err)
	} else {
		l.conclude(e, retry, err)
	}
}

func (l *ledger) spentAll(attempts int32) bool {
	return l.maxAttempts > 0 && attempts >= l.maxAttempts
}

// spent returns the event's attempts with this one.
func (e *event) spent() int32 {
	if e.charged {
		return e.Attempts
	}
	return oneMore(e.Attempts)
}

// conclude hands an event over to be settled, and goes on with its lane, or holds it.
func (l *ledger) conclude(e *event, v verdict, err error) {
	e.verdict, e.err = v, err
	l.done = append(l.done, e)
	l.signalDone()
	lane := e.lane
	if v == published || v == dead {
		delete(lane.shard.unheard, e.Seq)
	} else {
		lane.back++
	}
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

// settled takes events out of flight, of which the database knows what became.
func (l *ledger) settled(events []*event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		l.forget(e)
		if e.verdict == retry || e.verdict == untried {
			e.lane.back--
		}
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
