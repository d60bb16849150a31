package ledger

import (
	"time"

	"github.com/outboxgen/outboxgen/runtime/backoff"
)

// Attempt is one call of the publisher: events of one topic and of different keys.
type Attempt struct {
	Events []*Event
	// Charge says that the attempt has to be charged before it is made, since it may end the
	// process. It has one event then.
	Charge bool

	topic *topic
	probe bool // it is made although the topic could not be reached of late
	began time.Time
	// Of the topic, when the attempt began.
	answers, unanswered uint64
}

// Outcome is how an attempt ended for one event.
type Outcome struct {
	Result Result
	Err    error // why it was not acknowledged
	// GaveUp says that the publisher has given up for good: only a restart helps.
	GaveUp bool
}

// Result is what the broker said.
type Result uint8

const (
	Acknowledged Result = iota
	Refused             // the broker takes this event not now, which costs an attempt
	Impossible          // the broker never takes it
	Unreachable         // the broker could not be asked, or takes nothing of the topic
	Silent              // nobody answered in time
	NotTried            // the attempt was not made
)

// answered reports whether the broker has said something about the event.
func (r Result) answered() bool { return r <= Impossible }

// Charged notes that the attempt has been charged.
func (a *Attempt) Charged() {
	a.Events[0].charged, a.Charge = true, false
}

// Next records the result of an attempt, if there was one, and blocks until events are ready to be
// published. It returns nil once the worker is to end. Outcomes are those of the attempt's events.
func (l *Ledger) Next(ended *Attempt, outcomes []Outcome) *Attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if ended != nil {
		l.finish(ended, outcomes, now)
		l.report()
	}
	for ; !l.closed; now = time.Now() {
		if l.workers > l.Workers && l.workers > l.staff(now) {
			break
		}
		if a := l.begin(now); a != nil {
			l.callMore()
			return a
		}
		l.idleWorkers++
		l.wake.Wait()
		l.idleWorkers--
	}
	l.workers--
	l.callMore()
	return nil
}

// begin returns what may be published now, or nil. A topic that answers is given a batch, any other
// one event.
func (l *Ledger) begin(now time.Time) *Attempt {
	l.unstall(now)
	t, lane := l.nextTopic(now)
	if t == nil {
		return nil
	}
	a := &Attempt{topic: t}
	e := lane.queue[0]
	batch := t.proven && !t.isOpen() && !t.silent(now) && !e.Interrupted
	if !t.proven && t.out == 0 {
		l.wakeLater(silence) // others of it are tried then
	}
	t.started(a, now)
	a.take(lane)
	if e.Interrupted {
		e.isolated, l.isolatedOut = true, true
		a.Charge = !e.charged
	}
	for batch && len(a.Events) < l.BatchSize {
		lane := t.ready.pop(t, false)
		if lane == nil {
			break
		}
		a.take(lane)
	}
	return a
}

// take makes the head of a lane part of the attempt.
func (a *Attempt) take(lane *lane) {
	e := lane.queue[0]
	lane.out, e.taken = true, true
	a.Events = append(a.Events, e)
}

// finish takes in the end of an attempt, what the broker said first: it tells what silence means.
// Silence costs an event no attempt, unless its topic is well: it answered others meanwhile, and
// no other attempt at it ended in silence.
func (l *Ledger) finish(a *Attempt, outcomes []Outcome, now time.Time) {
	t := a.topic
	t.out--
	if a.probe {
		t.probing = false
	}
	mute, silent := 0, 0
	for i, e := range a.Events {
		e.lane.out = false
		switch o := outcomes[i]; {
		case o.Result.answered():
			l.reached(t, a, now)
			l.answered(e, o)
		case o.Result == NotTried:
			l.conclude(e, Untried, errNotTried)
		default:
			mute++
			if o.Result == Silent {
				silent++
			}
		}
	}
	if mute == 0 {
		return
	}
	blame := t.answers != a.answers && t.unanswered == a.unanswered && mute == 1 && silent == 1
	t.unanswered += uint64(mute)
	l.unanswered(a, outcomes, blame, now)
}

// unanswered puts off what got no answer without charging an attempt: until its topic is tried
// again, or if the topic answers others, for longer each time. If blame is true, it was one event
// alone, which is charged.
func (l *Ledger) unanswered(a *Attempt, outcomes []Outcome, blame bool, now time.Time) {
	t := a.topic
	var pause time.Duration
	for i, e := range a.Events {
		o := outcomes[i]
		if o.Result.answered() || o.Result == NotTried {
			continue
		}
		if blame {
			l.answered(e, o)
			continue
		}
		if e.charged {
			e.Attempts--
		}
		answersOthers := t.answers != a.answers
		if answersOthers {
			s := e.lane.shard
			s.unanswered[e.Seq]++
			e.Delay = backoff.Delay(s.unanswered[e.Seq], l.MinRetryDelay, l.MaxRetryDelay)
		}
		if pause == 0 && (!answersOthers || o.Result == Unreachable) {
			pause = l.failed(t, a.probe, o.Err, now)
		}
		if !answersOthers || o.Result == Unreachable {
			e.Delay = max(e.Delay, pause)
		}
		if o.GaveUp && !l.gaveUp {
			l.gaveUp = true
			l.changes = append(l.changes, TopicChange{Topic: t.name, Err: o.Err, GaveUp: true})
		}
		l.wakeLater(e.Delay)
		l.conclude(e, Retried, o.Err)
	}
}

// failed counts a failure of a topic, once for each attempt, and returns when to try again.
func (l *Ledger) failed(t *topic, probe bool, err error, now time.Time) time.Duration {
	wasOpen := t.isOpen()
	pause := t.failed(now, probe)
	if t.isOpen() && !wasOpen {
		l.changes = append(l.changes, TopicChange{Topic: t.name, Err: err})
		l.trim(t)
	}
	return pause
}

// answered takes in what the broker said of an event.
func (l *Ledger) answered(e *Event, o Outcome) {
	if o.Result == Acknowledged {
		l.acked = true
		l.conclude(e, Published, nil)
		return
	}
	e.Attempts = e.Spent()
	if o.Result == Impossible || l.spentAll(e.Attempts) {
		l.conclude(e, Dead, o.Err)
	} else {
		l.conclude(e, Retried, o.Err)
	}
}

// conclude hands an event over to be settled, and goes on with its lane, or holds it.
func (l *Ledger) conclude(e *Event, v Verdict, err error) {
	e.Verdict, e.Err = v, err
	l.done = append(l.done, e)
	l.signalDone()
	lane := e.lane
	if v == Published || v == Dead {
		delete(lane.shard.unanswered, e.Seq)
	} else {
		lane.back++
	}
	lane.queue[0] = nil
	lane.queue = lane.queue[1:]
	if (v == Retried || v == Untried) && lane.key != "" {
		l.hold(lane, e.Seq)
		return
	}
	l.release(lane, e.Seq)
	if len(lane.queue) > 0 {
		l.enqueue(lane)
		return
	}
	l.dispose(lane)
}
