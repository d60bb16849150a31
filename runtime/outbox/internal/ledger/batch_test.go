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
	if r := l.Resumable(); len(r.Keys) != 0 {
		t.Errorf("got %+v while an event of the key is not settled", r.Keys)
	}
	l.settledAll()
	r := l.Resumable()
	if len(r.Keys) != 1 || r.Keys[0].Key != "a" || r.Keys[0].From != 2 || r.Keys[0].To != 3 {
		t.Fatalf("got %+v, want events 2 to 3 of the key", r.Keys)
	}
	l.AcceptResumed(r, []storage.Item{item(2, "a", "t"), item(3, "a", "t")}, nil, now)
	for _, seq := range []int64{2, 3} {
		begun := l.begun(now)
		if len(begun) != 1 || begun[0].Events[0].Seq != seq {
			t.Fatalf("got %d attempts, want one at event %d", len(begun), seq)
		}
		l.ended(now, begun[0], acknowledge)
	}
	l.settledAll()
	if r := l.Resumable(); len(r.Keys) != 0 || len(l.shards[0].lanes) != 0 {
		t.Errorf("got %+v to read once more, and %d lanes that are remembered", r.Keys,
			len(l.shards[0].lanes))
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
	if n := l.Figures().InFlight; n != 1 {
		t.Errorf("%d events of the key are in flight, want the one that is due", n)
	}
	try(Refused)
	due(item(3, "a", "t"))
	try(Acknowledged)
	if r := l.Resumable(); len(r.Keys) != 1 || r.Keys[0].From != 5 {
		t.Errorf("got %+v, want the key from event 5 on", r.Keys)
	}
}

// TestAKeyIsNotReadOnWhileItsTopicIsDown reads a key on that was held, and finds an event of a
// topic of which enough is in memory.
func TestAKeyIsNotReadOnWhileItsTopicIsDown(t *testing.T) {
	now := time.Now()
	l := offered(testConfig, append(keyed(20), item(21, "a", "up"), item(22, "a", "t"))...)
	var up *Attempt
	for _, a := range l.begun(now) {
		if a.topic.name == "up" {
			up = a
			continue
		}
		l.ended(now, a, results(Unreachable))
	}
	for range breakerThreshold - 1 {
		l.ended(now, l.begun(now)[0], results(Unreachable))
	}
	l.ended(now, up, results(Refused))
	l.settledAll()
	p, _ := l.Plan(now)
	l.AcceptDue(p, []storage.Item{item(21, "a", "up")}, nil)
	l.ended(now, l.begun(now)[0], acknowledge)
	l.settledAll()
	r := l.Resumable()
	if len(r.Keys) != 1 {
		t.Fatalf("got %+v, want the key", r.Keys)
	}
	l.AcceptResumed(r, []storage.Item{item(22, "a", "t")}, nil, now)
	if r := l.Resumable(); len(r.Keys) != 0 || l.shards[0].lanes["a"].state() != laneParked {
		t.Errorf("got %+v to read although the topic cannot be reached", r.Keys)
	}
}

// TestARewindReadsBehindAHeadThatIsTriedAgain: the others of its key follow it in the same read.
func TestARewindReadsBehindAHeadThatIsTriedAgain(t *testing.T) {
	l := offered(testConfig, item(1, "a", "t"), item(2, "a", "t"), item(3, "a", "t"))
	now := time.Now()
	l.ended(now, l.begun(now)[0], results(Refused))
	l.settledAll()
	p, _ := l.Plan(now)
	l.AcceptDue(p, []storage.Item{item(1, "a", "t")}, nil)
	now = now.Add(2 * sweepPeriod)
	p, _ = l.Plan(now)
	l.Accept(p, []storage.Item{item(2, "a", "t"), item(3, "a", "t")}, nil)
	if n := l.Figures().InFlight; n != 3 {
		t.Errorf("%d events of the key are in flight, want all three", n)
	}
}

// TestARewindDoesNotForgetWhatGoesBack: a charged event was dropped for its topic, and is on its
// way back to the outbox when everything is read again.
func TestARewindDoesNotForgetWhatGoesBack(t *testing.T) {
	now := time.Now()
	l := New(testConfig)
	l.Own([]storage.Ownership{{Shard: 0}}, 0, 0)
	p, _ := l.Plan(now)
	items := keyed(20)
	charged := map[int64]bool{}
	for i := range items {
		charged[items[i].Seq] = true
	}
	l.Accept(p, items, charged)
	for range breakerThreshold {
		l.ended(now, l.begun(now)[0], results(Unreachable))
	}
	l.mu.Lock()
	l.rewind(now)
	l.mu.Unlock()
	l.settledAll()
	if got, want := len(l.Resumable().Keys), 20-breakerThreshold-breakerWaiting; got != want {
		t.Errorf("%d keys are read, want the %d that were dropped", got, want)
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
	parked := 0
	for _, lane := range l.shards[0].lanes {
		if lane.state() == laneParked {
			parked++
		}
	}
	if want := 99 - 3*c.BatchSize - breakerWaiting; parked != want {
		t.Errorf("%d keys are parked, want %d", parked, want)
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

// TestSilenceIsTheEventsFaultIfItsTopicAnswersOthers has three attempts at one time, which end in
// this order.
func TestSilenceIsTheEventsFaultIfItsTopicAnswersOthers(t *testing.T) {
	for name, test := range map[string]struct {
		ends    [3]Result
		charged int
	}{
		"nobody is answered":          {[3]Result{Silent, Silent, Silent}, 0},
		"one gets no answer":          {[3]Result{Acknowledged, Acknowledged, Silent}, 1},
		"two get none":                {[3]Result{Acknowledged, Silent, Silent}, 1}, // of both
		"it has none before another":  {[3]Result{Silent, Acknowledged, Acknowledged}, 0},
		"one cannot be reached":       {[3]Result{Acknowledged, Acknowledged, Unreachable}, 0},
		"an answer may be a refusal":  {[3]Result{Impossible, Acknowledged, Silent}, 1},
		"what is not tried is silent": {[3]Result{NotTried, NotTried, Silent}, 0},
	} {
		l, now := offered(testConfig, keyed(4)...), time.Now()
		l.ended(now, l.begun(now)[0], acknowledge)
		begun := l.begun(now)
		for i, a := range begun {
			l.ended(now, a, results(test.ends[i]))
		}
		charged := 0
		for _, e := range l.Unsettled() {
			if e.Verdict == Retried {
				charged += int(e.Attempts)
			}
		}
		if len(begun) != 3 || charged != test.charged {
			t.Errorf("%s: %d attempts at once, %d charged; want 3 and %d", name, len(begun),
				charged, test.charged)
		}
	}
}

// TestAChargedAttemptThatReachesNobodyIsGivenBack charges it before it is made.
func TestAChargedAttemptThatReachesNobodyIsGivenBack(t *testing.T) {
	for result, want := range map[Result]int32{Unreachable: 2, Silent: 2, Refused: 3} {
		l, now := New(testConfig), time.Now()
		l.Own([]storage.Ownership{{Shard: 0}}, 0, 0)
		p, _ := l.Plan(now)
		i := item(1, "a", "t")
		i.Attempts = 3 // with the one that is charged
		l.Accept(p, []storage.Item{i}, map[int64]bool{1: true})
		l.ended(now, l.begun(now)[0], results(result))
		if e := l.Unsettled()[0]; e.Verdict != Retried || e.Attempts != want {
			t.Errorf("result %d: got verdict %d and %d attempts, want a retry and %d", result,
				e.Verdict, e.Attempts, want)
		}
	}
}
