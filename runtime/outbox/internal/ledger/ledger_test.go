package ledger

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// testConfig is a relay's by default.
var testConfig = Config{
	MaxAttempts: 12, MaxEvents: 4096, MaxBytes: 16 << 20,
	MinRetryDelay: time.Second, MaxRetryDelay: 15 * time.Minute, Workers: 64, BatchSize: 1,
}

func TestTheLargestValuesDoNotOverflow(t *testing.T) {
	l := New(Config{
		MaxAttempts: math.MaxInt32, MaxEvents: math.MaxInt, MaxBytes: math.MaxInt,
		MinRetryDelay: math.MaxInt64 - 1, MaxRetryDelay: math.MaxInt64, Workers: math.MaxInt,
		BatchSize: math.MaxInt,
	})
	l.Own([]storage.Ownership{{Shard: 1}}, 0, 0)
	p, ok := l.Plan(time.Now())
	if !ok || p.Reads[0].Limit < 1 || p.Reads[0].Limit > maxReadLimit || p.Due[0].Limit < 1 {
		t.Errorf("got a plan with limits %+v and %+v", p.Reads, p.Due)
	}
	if l.staff(time.Now()) < 1 || l.share < 1 {
		t.Errorf("got %d workers and a share of %d", l.staff(time.Now()), l.share)
	}
}

// item is one of shard 0.
func item(seq int64, key, topic string) storage.Item {
	return storage.Item{
		Message:  storage.Message{Type: "x", Version: 1, Topic: topic, Key: key},
		Position: storage.Position{Seq: seq},
	}
}

// offered returns a ledger of one shard that has read items.
func offered(c Config, items ...storage.Item) *Ledger {
	l := New(c)
	l.Own([]storage.Ownership{{Shard: 0}}, 0, 0)
	p, _ := l.Plan(time.Now())
	l.Accept(p, items, nil)
	return l
}

// begun returns the attempts that can begin now.
func (l *Ledger) begun(now time.Time) (list []*Attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for a := l.begin(now); a != nil; a = l.begin(now) {
		list = append(list, a)
	}
	return list
}

// ended has attempts end, each event as outcome says.
func (l *Ledger) ended(now time.Time, a *Attempt, outcome func(*Event) Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	outcomes := make([]Outcome, len(a.Events))
	for i, e := range a.Events {
		outcomes[i] = outcome(e)
	}
	l.finish(a, outcomes, now)
}

func acknowledge(*Event) Outcome { return Outcome{} }

// TestAttemptsEndAtTheTopOfTheirRange refuses an event for good measure: with a limit it is dead,
// without one it is tried again, and its attempts do not begin anew.
func TestAttemptsEndAtTheTopOfTheirRange(t *testing.T) {
	for most, want := range map[int32]Verdict{0: Retried, 12: Dead, math.MaxInt32: Dead} {
		c := testConfig
		c.MaxAttempts = most
		i := item(1, "a", "t")
		i.Attempts = math.MaxInt32
		l := offered(c, i)
		now := time.Now()
		a := l.begun(now)[0]
		l.ended(now, a, func(*Event) Outcome {
			return Outcome{Result: Refused, Err: errors.New("refused")}
		})
		if e := a.Events[0]; e.Verdict != want || e.Attempts != math.MaxInt32 {
			t.Errorf("MaxAttempts %d: got verdict %d with %d attempts, want %d", most, e.Verdict,
				e.Attempts, want)
		}
	}
}

// TestABatchIsOfOneTopicThatAnswers has a topic prove itself with one event first, and has none
// share a batch with another.
func TestABatchIsOfOneTopicThatAnswers(t *testing.T) {
	c := testConfig
	c.BatchSize = 3
	var items []storage.Item
	for seq := range int64(20) {
		key, topic := fmt.Sprint("key ", seq%10), []string{"even", "odd"}[seq%2]
		items = append(items, item(seq+1, key, topic))
	}
	l, now := offered(c, items...), time.Now()
	first := l.begun(now)
	if len(first) != 2 || len(first[0].Events) != 1 || len(first[1].Events) != 1 {
		t.Fatalf("got %d attempts at topics that were never asked, want two with one event",
			len(first))
	}
	for _, a := range first {
		l.ended(now, a, acknowledge)
	}
	var sizes []int
	for _, a := range l.begun(now) {
		keys := map[string]bool{}
		for _, e := range a.Events {
			if keys[e.Key] || e.Topic != a.Events[0].Topic {
				t.Errorf("event %d of topic %s and key %s shares a batch", e.Seq, e.Topic, e.Key)
			}
			keys[e.Key] = true
		}
		sizes = append(sizes, len(a.Events))
	}
	if !slices.Equal(sizes, []int{3, 3, 2, 2}) {
		t.Errorf("got batches of %v, want three and two for each topic", sizes)
	}
}

// TestABatchIsJudgedAsOneAttempt has the events of a batch fail together: that is one failure of
// their topic, and costs none of them an attempt.
func TestABatchIsJudgedAsOneAttempt(t *testing.T) {
	for name, test := range map[string]struct {
		result            func(e *Event) Result
		open              bool
		charged, attempts int
	}{
		"nobody answers":     {func(*Event) Result { return Silent }, false, 0, 1},
		"it is unreachable":  {func(*Event) Result { return Unreachable }, false, 0, 1},
		"one gets no answer": {only(3, Silent), false, 1, 1},
		"two get none": {func(e *Event) Result { return fromSeq(e, 4, Silent) }, false, 0,
			1},
		"one is refused":         {only(3, Refused), false, 1, 1},
		"it is down three times": {func(*Event) Result { return Unreachable }, true, 0, 3},
	} {
		c := testConfig
		c.BatchSize = 4
		l, now := offered(c, item(1, "", "t")), time.Now()
		l.ended(now, l.begun(now)[0], acknowledge)
		for n := range test.attempts {
			var items []storage.Item
			for seq := range int64(4) {
				items = append(items, item(int64(n*4)+seq+2, "", "t"))
			}
			p, _ := l.Plan(now)
			l.Accept(p, items, nil)
			batch := l.begun(now)
			if len(batch) != 1 || len(batch[0].Events) != 4 {
				t.Fatalf("%s: got %d attempts, want one batch of four", name, len(batch))
			}
			l.ended(now, batch[0], func(e *Event) Outcome {
				return Outcome{Result: test.result(e), Err: errors.New(name)}
			})
		}
		charged := 0
		for _, e := range l.Unsettled() {
			if e.Verdict == Retried {
				charged += int(e.Attempts)
			}
		}
		if charged != test.charged || l.Figures().Open != test.open {
			t.Errorf("%s: got %d attempts charged and open %v, want %d and %v", name, charged,
				l.Figures().Open, test.charged, test.open)
		}
	}
}

func only(seq int64, r Result) func(*Event) Result {
	return func(e *Event) Result {
		if e.Seq == seq {
			return r
		}
		return Acknowledged
	}
}

func fromSeq(e *Event, seq int64, r Result) Result {
	if e.Seq >= seq {
		return r
	}
	return Acknowledged
}

// TestAStaleEntryHidesNoEventThatTravelsAlone has a lane wait in the queue of ordinary events, lose
// its events, and get one that may have ended a process: that one is not published with others.
func TestAStaleEntryHidesNoEventThatTravelsAlone(t *testing.T) {
	s, topic := newShard(storage.Ownership{}), &topic{name: "t"}
	l := newLane(s, "a")
	interrupted := item(2, "a", "t")
	interrupted.Interrupted = true
	e := &Event{Item: &interrupted, lane: l}
	l.queue, s.flight[2] = []*Event{e}, e
	topic.ready.push(l) // by an event that is gone
	topic.isolated.push(l)
	if got := topic.ready.pop(topic, false); got != nil {
		t.Error("it is offered with ordinary events")
	}
	if got := topic.isolated.pop(topic, true); got != l {
		t.Error("it is not offered by itself")
	}
}

func TestFifoThatNeverRunsEmptyStaysSmall(t *testing.T) {
	var q fifo
	s, topic := newShard(storage.Ownership{}), &topic{}
	newLane := func(seq int64) *lane {
		l := &lane{shard: s}
		l.queue = []*Event{{Item: &storage.Item{Position: storage.Position{Seq: seq}}, lane: l}}
		s.flight[seq] = l.queue[0]
		return l
	}
	const waiting = 100
	for seq := range int64(100_000) {
		q.push(newLane(seq))
		if seq < waiting {
			continue
		}
		l := q.pop(topic, false)
		if l == nil || l.queue[0].Seq != seq-waiting {
			t.Fatalf("after %d: got %+v", seq, l)
		}
		delete(s.flight, l.queue[0].Seq)
	}
	if c := cap(q); c > 10*waiting {
		t.Fatalf("%d lanes wait in a queue of capacity %d", waiting, c)
	}
}

// TestOneBusyShardAmongManyIsReadInBatchesThatFitItsBytes is about a limit that the store need not
// cut off by bytes: to find out where costs another read.
func TestOneBusyShardAmongManyIsReadInBatchesThatFitItsBytes(t *testing.T) {
	const shards, payload = 64, 1000
	l := New(testConfig)
	var owned []storage.Ownership
	for shard := range int32(shards) {
		owned = append(owned, storage.Ownership{Shard: shard})
	}
	l.Own(owned, 0, 0)
	p, _ := l.Plan(time.Now())
	rows := make([]storage.Item, p.Reads[0].Limit)
	for i := range rows {
		rows[i] = storage.Item{
			Position: storage.Position{Seq: int64(i + 1)},
			Message:  storage.Message{Payload: make([]byte, payload)},
		}
	}
	l.Accept(p, rows, nil) // shard 0 has more, and nobody else has any
	l.mu.Lock()
	for _, e := range l.shards[0].flight {
		l.forget(e)
	}
	l.mu.Unlock()
	p, ok := l.Plan(time.Now())
	if limit := p.Reads[0].Limit; !ok || limit*payload > p.Bytes || limit*payload < p.Bytes/2 {
		t.Errorf("got a limit of %d events of %d bytes, want them to fill %d bytes", limit, payload,
			p.Bytes)
	}
}

// TestReadingAgainCostsLittle counts how often the shards are read from their beginning in an hour
// while nothing happens: about once a minute, and the more events are left alone again each time,
// the rarer.
func TestReadingAgainCostsLittle(t *testing.T) {
	for left, want := range map[int]int{0: 60, 10_000: 60, 600_000: 6, 1 << 40: 0} {
		l := New(testConfig)
		l.Own([]storage.Ownership{{Shard: 1}}, 0, 0)
		now := l.rewound
		times := 0
		for range 60 * 60 {
			before := l.rewound
			l.skippedReads = left // as after a read of all events that are held
			now = now.Add(time.Second)
			l.Plan(now)
			if l.rewound != before {
				times++
			}
		}
		if times != want {
			t.Errorf("with %d events left alone: %d times in an hour, want %d", left, times, want)
		}
	}
}

// TestATopicsTroubleIsNotReadAgainAndAgain has a topic come and go all the time.
func TestATopicsTroubleIsNotReadAgainAndAgain(t *testing.T) {
	l := New(testConfig)
	now, times := l.rewound, 0
	for range 10_000 {
		before := l.rewound
		l.skippedReads = 100_000
		now = now.Add(time.Millisecond)
		l.mu.Lock()
		l.want(now)
		l.maybeRewind(now)
		l.mu.Unlock()
		if l.rewound != before {
			times++
		}
	}
	if times < 5 || times > 10 { // a second's reading each time
		t.Errorf("all was read again %d times in ten seconds", times)
	}
}
