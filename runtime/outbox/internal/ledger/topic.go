package ledger

import (
	"time"

	"github.com/outboxgen/outboxgen/runtime/backoff"
)

// topic is what a relay knows of one topic: what of it is ready, whether it answers, and so how
// much of the relay it may use. The trouble of one topic is no other's: each has a circuit breaker
// of its own, each attempt is judged by what the same topic answered meanwhile, and one that does
// not answer is given a share of the workers, while those it keeps waiting are replaced.
//
// Its breaker opens after a few attempts in a row that could not reach it. From then on one event
// at a time is tried, another one each time and ever more rarely, until there is an answer.
type topic struct {
	name     string
	ready    fifo // lanes whose head may be published
	isolated fifo // the same, if the event may end the process
	inTurn   bool // it is in Ledger.turns or Ledger.stalled
	out      int  // attempts under way
	proven   bool // it has answered, and its breaker has not opened since
	left     bool // events of it were left alone, and are to be read again once it answers

	lastAnswer time.Time     // or if that was earlier, when it came to owe one
	latency    time.Duration // of its slowest answers of late
	answers    uint64        // any, refusals too
	unanswered uint64        // events without an answer

	failures int // attempts in a row
	opened   time.Time
	until    time.Time // no attempt begins before
	probing  bool
	asked    time.Time // when an event was looked for to try it with
}

const (
	breakerThreshold = 3
	breakerMin       = 100 * time.Millisecond
	breakerMax       = 15 * time.Second
	breakerWaiting   = 4 // few, since they are in flight

	silence  = 500 * time.Millisecond // without an answer, and a topic counts as silent
	askAfter = time.Second            // an open breaker without an event to try looks for one
)

func (t *topic) isOpen() bool { return t.failures >= breakerThreshold }

// closed reports whether the breaker lets an attempt begin.
func (t *topic) closed(now time.Time) bool {
	return !t.isOpen() || !t.probing && !now.Before(t.until)
}

// silent reports whether the topic owes answers for much longer than it usually takes.
func (t *topic) silent(now time.Time) bool {
	return t.out > 0 && now.Sub(t.lastAnswer) >= max(silence, 2*t.latency)
}

// mayStart reports whether another attempt may begin. A topic that answers has no limit of its own,
// and one that has not been asked yet is asked with one event.
func (t *topic) mayStart(now time.Time, share int) bool {
	switch {
	case t.isOpen():
		return t.closed(now)
	case t.silent(now):
		return t.out < share
	default:
		return t.proven || t.out == 0
	}
}

// offers reports whether the lane's first event is of the topic, and waits for a worker.
func (t *topic) offers(l *lane) bool {
	return len(l.queue) > 0 && l.queue[0].Topic == t.name && l.queue[0].waits()
}

// waiting returns how many lanes wait for the topic.
func (t *topic) waiting() int { return len(t.ready) + len(t.isolated) }

// full reports whether the topic does not answer, and enough is in memory to try it with.
func (t *topic) full(now time.Time) bool {
	return t != nil && t.waiting() >= breakerWaiting && (!t.closed(now) || t.silent(now))
}

// idle reports whether there is nothing to remember of the topic.
func (t *topic) idle() bool {
	return t.out == 0 && t.failures == 0 && t.waiting() == 0 && !t.left
}

// started notes that an attempt begins.
func (t *topic) started(a *Attempt, now time.Time) {
	if t.out == 0 {
		t.lastAnswer = now
	}
	t.out++
	a.began, a.answers, a.unanswered = now, t.answers, t.unanswered
	if t.isOpen() {
		a.probe, t.probing = true, true
	}
}

// answered notes that the broker said something about an event of an attempt.
func (t *topic) answered(a *Attempt, now time.Time) {
	t.answers++
	t.latency = max(now.Sub(a.began), t.latency-t.latency/16)
	t.lastAnswer, t.proven, t.failures = now, true, 0
}

// failed notes that the topic could not be reached, and returns when to try again. Once the breaker
// is open, only the probe counts.
func (t *topic) failed(now time.Time, probe bool) time.Duration {
	if t.isOpen() && !probe {
		return max(breakerMin, t.until.Sub(now))
	}
	t.failures++
	bound := backoff.Bound(t.failures-breakerThreshold+1, breakerMin, breakerMax)
	delay := max(breakerMin, bound/2+backoff.Jitter(bound/2))
	t.until, t.asked = now.Add(delay), time.Time{}
	if t.failures == breakerThreshold {
		t.opened, t.proven = now, false
	}
	return delay
}

// TopicChange is what an operator is told of a topic's breaker.
type TopicChange struct {
	Topic  string
	Err    error         // why it opened; nil if it closed
	After  time.Duration // that it was open
	Gone   bool          // it closed since nothing is pending that it could be tried with
	GaveUp bool          // the publisher has given up for good, which is told once
}

// ProbeInterval is how rarely an open breaker lets an event be tried, at most.
const ProbeInterval = breakerMax

// topic returns what is known of a topic.
func (l *Ledger) topic(name string) *topic {
	t := l.topics[name]
	if t == nil {
		t = &topic{name: name}
		l.topics[name] = t
	}
	return t
}

// push makes a lane's head available to workers, in its topic's turn.
func (l *Ledger) push(lane *lane) {
	e := lane.queue[0]
	t := l.topic(e.Topic)
	if e.Interrupted {
		t.isolated.push(lane)
	} else {
		t.ready.push(lane)
	}
	if !t.inTurn {
		t.inTurn = true
		l.turns = append(l.turns, t)
	}
}

// enqueue makes a lane's head available to workers, and calls one.
func (l *Ledger) enqueue(lane *lane) {
	l.push(lane)
	l.call()
}

// nextTopic returns a topic that may be tried now, and the lane that is first; or nil. The topics
// that have something ready take turns.
func (l *Ledger) nextTopic(now time.Time) (*topic, *lane) {
	for len(l.turns) > 0 {
		t := l.turns[0]
		l.turns[0] = nil
		l.turns = l.turns[1:]
		if !t.mayStart(now, l.share) {
			l.stalled = append(l.stalled, t)
			if t.isOpen() {
				l.trim(t)
			}
			continue
		}
		lane := l.popOf(t)
		if t.waiting() > 0 {
			if lane == nil {
				// What is left must be tried alone, and another such event is being tried.
				l.stalled = append(l.stalled, t)
				continue
			}
			l.turns = append(l.turns, t)
		} else {
			t.inTurn = false
		}
		if lane != nil {
			return t, lane
		}
	}
	return nil, nil
}

// popOf takes a lane of a topic that may be tried now: one whose head may end the process if no
// other such one is being tried, and else any other one.
func (l *Ledger) popOf(t *topic) *lane {
	if !l.isolatedOut {
		if lane := t.isolated.pop(t, true); lane != nil {
			return lane
		}
	}
	return t.ready.pop(t, false)
}

// unstall gives those topics a turn that may be tried by now.
func (l *Ledger) unstall(now time.Time) {
	still := l.stalled[:0]
	for _, t := range l.stalled {
		switch {
		case t.waiting() == 0:
			t.inTurn = false
		case t.mayStart(now, l.share) && (len(t.ready) > 0 || !l.isolatedOut):
			l.turns = append(l.turns, t)
		default:
			still = append(still, t)
		}
	}
	clear(l.stalled[len(still):])
	l.stalled = still
}

// trim drops what waits for a topic that does not answer, except a few lanes to try it with.
func (l *Ledger) trim(t *topic) {
	room := breakerWaiting
	for _, q := range []*fifo{&t.isolated, &t.ready} {
		keep := min(len(*q), room)
		room -= keep
		for _, lane := range (*q)[keep:] {
			if t.offers(lane) {
				l.park(t, lane)
			}
		}
		clear((*q)[keep:])
		*q = (*q)[:keep]
	}
}

// park drops what is queued of a lane, to be read again once its topic answers.
func (l *Ledger) park(t *topic, lane *lane) {
	l.dropLane(lane)
	lane.parked, t.left = true, true
}

// reached takes in that a topic has answered: what waited for it goes on.
func (l *Ledger) reached(t *topic, a *Attempt, now time.Time) {
	if t.isOpen() {
		l.changes = append(l.changes, TopicChange{Topic: t.name, After: now.Sub(t.opened)})
	}
	t.answered(a, now)
	if t.left {
		t.left = false
		l.want(now)
	}
}

// lookForProbes has the shards read again if a breaker is open and nothing is in memory to try its
// topic with, and forgets the breaker if there turns out to be nothing.
func (l *Ledger) lookForProbes(now time.Time) {
	for name, t := range l.topics {
		switch {
		case !t.isOpen() || !t.closed(now) || t.out > 0 || t.waiting() > 0:
		case t.asked.IsZero():
			if now.Sub(t.until) >= askAfter { // what has failed becomes due by itself
				t.asked = now
				l.want(now)
			}
		case l.rewound.After(t.asked) && now.Sub(l.rewound) >= sweepPeriod/2 && !l.anyBusy():
			delete(l.topics, name)
			l.changes = append(l.changes,
				TopicChange{Topic: name, Gone: true, After: now.Sub(t.opened)})
		}
	}
}

// stuck returns what is in memory of topics that do not answer: it must not keep others from being
// read. What is in the way of that is dropped.
func (l *Ledger) stuck(now time.Time) (events, bytes int) {
	mute := map[string]bool{}
	for name, t := range l.topics {
		if t.isOpen() || t.silent(now) {
			mute[name] = true
			l.trim(t)
		}
	}
	if len(mute) == 0 {
		return 0, 0
	}
	for _, s := range l.shards {
		for _, e := range s.flight {
			if mute[e.Topic] {
				events++
				bytes += len(e.Payload)
			}
		}
	}
	return events, bytes
}
