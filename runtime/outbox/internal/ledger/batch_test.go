package ledger

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// settledAll records what attempts have come to, as if the database had been told.
func (l *Ledger) settledAll() { l.Settled(l.Unsettled()) }

func results(r Result) func(*Event) Outcome {
	return func(*Event) Outcome { return Outcome{Result: r, Err: errors.New("drawn")} }
}

// keyed returns items of as many keys, all of topic t.
func keyed(n int) (items []storage.Item) {
	for seq := range int64(n) {
		items = append(items, item(seq+1, fmt.Sprint("key ", seq), "t"))
	}
	return items
}

// TestAKeyThatGoesOnIsReadAtOnce holds a key, of which more was in memory, and lets it go on: its
// other events are left out of reads in the meantime, and then read without another rewind.
func TestAKeyThatGoesOnIsReadAtOnce(t *testing.T) {
	l := offered(testConfig, item(1, "a", "t"), item(2, "a", "t"), item(3, "a", "t"))
	now := time.Now()
	l.ended(now, l.begun(now)[0], results(Refused))
	l.settledAll()
	p, _ := l.Plan(now)
	slices.Sort(p.Known)
	if !slices.Equal(p.Known, []int64{2, 3}) {
		t.Errorf("a read leaves out %v, want the events behind the one that failed", p.Known)
	}
	l.AcceptDue(p, []storage.Item{item(1, "a", "t")}, nil)
	l.ended(now, l.begun(now)[0], acknowledge)
	l.settledAll()
	r := l.Resumable()
	if len(r.Keys) != 1 || r.Keys[0].Key != "a" || r.Keys[0].From != 2 || r.Keys[0].To != 3 {
		t.Fatalf("got %+v, want events 2 to 3 of the key", r.Keys)
	}
	l.AcceptResumed(r, []storage.Item{item(2, "a", "t"), item(3, "a", "t")}, nil, now)
	if begun := l.begun(now); len(begun) != 1 || begun[0].Events[0].Seq != 2 {
		t.Errorf("got %d attempts, want one at event 2", len(begun))
	}
	if r := l.Resumable(); len(r.Keys) != 0 {
		t.Errorf("got %+v to read once more", r.Keys)
	}
}

// TestAHeadThatWaitsBehindAnotherIsNotForgotten reads a key on, of which one event may be tried and
// fails, and another one waits for its own retry.
func TestAHeadThatWaitsBehindAnotherIsNotForgotten(t *testing.T) {
	l := offered(testConfig, item(1, "a", "t"), item(3, "a", "t"), item(5, "a", "t"))
	now := time.Now()
	try := func(r Result) {
		l.ended(now, l.begun(now)[0], results(r))
		l.settledAll()
	}
	due := func(i storage.Item) {
		p, _ := l.Plan(now)
		l.AcceptDue(p, []storage.Item{i}, nil)
	}
	try(Refused)
	due(item(1, "a", "t"))
	try(Acknowledged)
	waits := item(5, "a", "t")
	waits.NotDue = true
	l.AcceptResumed(l.Resumable(), []storage.Item{item(3, "a", "t"), waits}, nil, now)
	try(Refused)
	due(item(3, "a", "t"))
	try(Acknowledged)
	if r := l.Resumable(); len(r.Keys) != 1 || r.Keys[0].From != 5 {
		t.Errorf("got %+v, want the key from event 5 on", r.Keys)
	}
}

// TestAnOpenBreakerTriesOneEventAtATime has many events ready and batches allowed.
func TestAnOpenBreakerTriesOneEventAtATime(t *testing.T) {
	now := time.Now()
	c := testConfig
	c.BatchSize = 3
	l := offered(c, keyed(30)...)
	for range breakerThreshold {
		l.ended(now, l.begun(now)[0], results(Unreachable))
	}
	if n := len(l.begun(now)); n != 0 {
		t.Errorf("%d attempts begin at once", n)
	}
	now = now.Add(breakerMax)
	begun := l.begun(now)
	if len(begun) != 1 || len(begun[0].Events) != 1 {
		t.Fatalf("got %d attempts, want one at one event", len(begun))
	}
	l.ended(now, begun[0], acknowledge)
	if l.Figures().Open {
		t.Error("the breaker is open after an answer")
	}
	if begun = l.begun(now); len(begun) == 0 || len(begun[0].Events) != 3 {
		t.Errorf("got %d attempts after an answer, want batches", len(begun))
	}
}

// TestAnOpenBreakerLeavesLittleInMemory fails a topic with many events in memory, and has it answer
// again: the events that were dropped are read once more.
func TestAnOpenBreakerLeavesLittleInMemory(t *testing.T) {
	now := time.Now()
	c := testConfig
	c.BatchSize = 3
	c.Workers = 3
	l := offered(c, keyed(100)...)
	l.ended(now, l.begun(now)[0], acknowledge)
	var failing []*Attempt
	for range breakerThreshold {
		l.mu.Lock()
		failing = append(failing, l.begin(now))
		l.mu.Unlock()
	}
	for _, a := range failing {
		l.ended(now, a, results(Unreachable))
	}
	l.settledAll()
	if n := l.Figures().InFlight; n != breakerWaiting {
		t.Errorf("%d events are in memory, want %d to try the topic with", n, breakerWaiting)
	}
	if l.wanted() {
		t.Error("everything is to be read again although the topic does not answer")
	}
	now = now.Add(breakerMax)
	l.ended(now, l.begun(now)[0], acknowledge)
	l.settledAll()
	if !l.wanted() {
		t.Error("what was dropped is not read again")
	}
	now = now.Add(sweepPeriod / 2)
	p, _ := l.Plan(now)
	if p.Reads[0].After != 0 {
		t.Errorf("the next read begins behind %d, want the beginning", p.Reads[0].After)
	}
	l.Accept(p, keyed(100)[20:], nil)
	if n := l.Figures().InFlight; n < 80 {
		t.Errorf("%d events are in flight, want all that were read", n)
	}
}

func (l *Ledger) wanted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rewindWanted
}

// TestASilentTopicIsTriedWithSingleEvents: a batch would be as long without an answer.
func TestASilentTopicIsTriedWithSingleEvents(t *testing.T) {
	now := time.Now()
	c := testConfig
	c.BatchSize, c.Workers = 3, 64
	l := offered(c, keyed(30)...)
	l.ended(now, l.begun(now)[0], acknowledge)
	l.mu.Lock()
	first := l.begin(now)
	l.mu.Unlock()
	now = now.Add(2 * silence)
	begun := l.begun(now)
	if len(first.Events) != 3 || len(begun) != l.share-1 {
		t.Fatalf("a batch of %d, then %d attempts; want one of 3, and %d while it has no answer",
			len(first.Events), len(begun), l.share-1)
	}
	for _, a := range begun {
		if len(a.Events) != 1 {
			t.Errorf("a batch of %d begins at a topic that is silent", len(a.Events))
		}
	}
}

// TestEventsThatMayEndTheProcessAreTriedAlone has two of them among others that may be published:
// the second one begins only once the first one is settled.
func TestEventsThatMayEndTheProcessAreTriedAlone(t *testing.T) {
	now := time.Now()
	c := testConfig
	c.BatchSize = 10
	items := keyed(6)
	items[1].Interrupted, items[4].Interrupted = true, true
	l := offered(c, items...)
	var tried []int64 // of those two, in each step
	step := func() {
		for _, a := range l.begun(now) {
			if e := a.Events[0]; e.Interrupted {
				tried = append(tried, e.Seq)
				if len(a.Events) > 1 || !a.Charge {
					t.Errorf("event %d is in a batch of %d, charged before: %v", e.Seq,
						len(a.Events), a.Charge)
				}
			}
			l.ended(now, a, acknowledge)
		}
	}
	for range 3 {
		step()
	}
	if !slices.Equal(tried, []int64{2}) {
		t.Errorf("tried %v before the first one was settled, want 2", tried)
	}
	for range 2 {
		l.settledAll()
		step()
	}
	if !slices.Equal(tried, []int64{2, 5}) {
		t.Errorf("tried %v, want 2 and 5", tried)
	}
}

// TestALaneWhoseTopicHasChangedIsNoPartOfABatch: its first event was dropped while the lane waited.
func TestALaneWhoseTopicHasChangedIsNoPartOfABatch(t *testing.T) {
	now := time.Now()
	c := testConfig
	c.BatchSize = 3
	l := offered(c, item(1, "a", "t"), item(2, "b", "t"), item(3, "c", "t"))
	l.ended(now, l.begun(now)[0], acknowledge)
	l.mu.Lock()
	l.unstall(now) // so that it is the topic's turn first
	lane := l.shards[0].lanes["c"]
	l.dropLane(lane)
	lane.next = 0
	other := item(4, "c", "other")
	l.dispatch(lane, &other, false)
	l.mu.Unlock()
	for _, a := range l.begun(now) {
		for _, e := range a.Events {
			if e.Topic != a.Events[0].Topic || len(a.Events) > 1 {
				t.Errorf("event %d of topic %s is in a batch of %d", e.Seq, e.Topic, len(a.Events))
			}
		}
	}
}
