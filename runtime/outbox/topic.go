package outbox

import (
	"log/slog"
	"time"

	"github.com/outboxgen/outboxgen/runtime/backoff"
)

// topic is what a relay knows of one topic: whether it answers, and so how much of the relay it may
// use. The trouble of one topic is no other's: each has a circuit breaker of its own, each attempt
// is judged by what the same topic answered meanwhile, and one that does not answer is given a
// share of the workers, while those it keeps waiting are replaced.
//
// Its breaker opens after a few attempts in a row that could not reach it. From then on one event
// at a time is tried, another one each time and ever more rarely, until there is an answer.
type topic struct {
	name    string
	out     int  // attempts under way
	proven  bool // it has answered, and its breaker has not opened since
	waiting fifo // lanes that may not be tried yet
	left    bool // events of it were left alone, and are to be read again once it answers

	heard    time.Time     // its last answer, or if that was earlier, when it came to owe one
	latency  time.Duration // of its slowest answers of late
	answers  uint64        // any, refusals too
	timeouts uint64

	failures int // in a row
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

// ready reports whether the breaker lets an attempt begin.
func (t *topic) ready(now time.Time) bool {
	return !t.isOpen() || !t.probing && !now.Before(t.until)
}

// silent reports whether the topic owes answers for much longer than it usually takes.
func (t *topic) silent(now time.Time) bool {
	return t.out > 0 && now.Sub(t.heard) >= max(silence, 2*t.latency)
}

// mayStart reports whether another attempt may begin. A topic that answers has no limit of its own,
// and one that has not been asked yet is asked with one event.
func (t *topic) mayStart(now time.Time, share int) bool {
	switch {
	case t.isOpen():
		return t.ready(now)
	case t.silent(now):
		return t.out < share
	default:
		return t.proven || t.out == 0
	}
}

// full reports whether the topic does not answer, and enough is in memory to try it with.
func (t *topic) full(now time.Time) bool {
	return t != nil && len(t.waiting) >= breakerWaiting && (!t.ready(now) || t.silent(now))
}

// idle reports whether there is nothing to remember of the topic.
func (t *topic) idle() bool {
	return t.out == 0 && t.failures == 0 && len(t.waiting) == 0 && !t.left
}

// started notes that an attempt begins.
func (t *topic) started(e *event, now time.Time) {
	if t.out == 0 {
		t.heard = now
	}
	t.out++
	e.began, e.answers, e.timeouts = now, t.answers, t.timeouts
	if t.isOpen() {
		e.probe, t.probing = true, true
	}
}

// answered notes that the broker said something about an event.
func (t *topic) answered(e *event, now time.Time) {
	t.answers++
	t.latency = max(now.Sub(e.began), t.latency-t.latency/16)
	t.heard, t.proven, t.failures = now, true, 0
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

// change is what an operator is told of a topic's breaker.
type change struct {
	topic string
	err   error         // why it opened; nil if it closed
	after time.Duration // that it was open
	gone  bool          // it closed since nothing is pending that it could be tried with
	ended bool          // the publisher has given up for good, which is told once
}

func (c change) log(logger *slog.Logger) {
	switch {
	case c.ended:
		logger.Error("outbox: the publisher has given up for good, nothing is published before a "+
			"restart", "error", c.err)
	case c.err != nil:
		logger.Warn("outbox: a topic cannot be reached: its events wait, and one at a time "+
			"is tried",
			"topic", c.topic, "error", c.err, "try at least every", breakerMax)
	case c.gone:
		logger.Info("outbox: nothing is pending any more of a topic that could not be reached",
			"topic", c.topic, "after", c.after)
	default:
		logger.Info("outbox: a topic can be reached again", "topic", c.topic, "after", c.after)
	}
}

// topic returns what is known of a topic.
func (l *ledger) topic(name string) *topic {
	t := l.topics[name]
	if t == nil {
		t = &topic{name: name}
		l.topics[name] = t
	}
	return t
}

// stall keeps a lane in memory until its topic may be tried.
func (l *ledger) stall(t *topic, lane *lane) {
	if len(t.waiting) == 0 {
		l.stalled = append(l.stalled, t)
	}
	t.waiting.push(lane)
}

// release makes a lane of each topic ready that may be tried by now.
func (l *ledger) release(now time.Time) {
	still := l.stalled[:0]
	for _, t := range l.stalled {
		if t.mayStart(now, l.share) {
			if lane := t.waiting.pop(); lane != nil {
				l.push(lane)
			}
		}
		if len(t.waiting) > 0 {
			still = append(still, t)
		}
	}
	clear(l.stalled[len(still):])
	l.stalled = still
}

// trim drops what waits for a topic that does not answer, except a few lanes to try it with.
func (l *ledger) trim(t *topic) {
	kept := t.waiting[:min(len(t.waiting), breakerWaiting)]
	for _, lane := range t.waiting[len(kept):] {
		if len(lane.queue) > 0 && lane.queue[0].waits() {
			l.park(t, lane)
		}
	}
	clear(t.waiting[len(kept):])
	t.waiting = kept
}

// park drops what is queued of a lane, to be read again once its topic answers.
func (l *ledger) park(t *topic, lane *lane) {
	l.dropLane(lane)
	lane.parked, t.left = true, true
}

// reached takes in that a topic has answered: what waited for it goes on.
func (l *ledger) reached(t *topic, e *event, now time.Time) {
	if t.isOpen() {
		l.changes = append(l.changes, change{topic: t.name, after: now.Sub(t.opened)})
	}
	t.answered(e, now)
	for lane := t.waiting.pop(); lane != nil; lane = t.waiting.pop() {
		l.enqueue(lane)
	}
	if t.left {
		t.left = false
		l.want(now)
	}
}

// lookForProbes has the shards read again if a breaker is open and nothing is in memory to try its
// topic with, and forgets the breaker if there turns out to be nothing.
func (l *ledger) lookForProbes(now time.Time) {
	for name, t := range l.topics {
		switch {
		case !t.isOpen() || !t.ready(now) || t.out > 0 || len(t.waiting) > 0:
		case t.asked.IsZero():
			if now.Sub(t.until) >= askAfter { // what has failed becomes due by itself
				t.asked = now
				l.want(now)
			}
		case l.rewound.After(t.asked) && now.Sub(l.rewound) >= sweepPeriod/2 && !l.anyBusy():
			delete(l.topics, name)
			l.changes = append(l.changes, change{topic: name, gone: true, after: now.Sub(t.opened)})
		}
	}
}

// stuck returns what is in memory of topics that do not answer: it must not keep others from being
// read. What is in the way of that is dropped.
func (l *ledger) stuck(now time.Time) (events, bytes int) {
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

// tell logs how topics have fared. It gives up the lock meanwhile.
func (l *ledger) tell() {
	if len(l.changes) == 0 {
		return
	}
	changes := l.changes
	l.changes = nil
	l.mu.Unlock()
	defer l.mu.Lock()
	for _, c := range changes {
		c.log(l.logger)
	}
}
