package outbox

import (
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

func TestFifoThatNeverRunsEmptyStaysSmall(t *testing.T) {
	var q fifo
	s := &shard{flight: map[int64]*event{}}
	newLane := func(seq int64) *lane {
		l := &lane{shard: s}
		l.queue = []*event{{Item: &storage.Item{Position: storage.Position{Seq: seq}}, lane: l}}
		s.flight[seq] = l.queue[0]
		return l
	}
	const waiting = 100
	for seq := range int64(100_000) {
		q.push(newLane(seq))
		if seq < waiting {
			continue
		}
		l := q.pop()
		if l == nil || l.queue[0].Seq != seq-waiting {
			t.Fatalf("after %d: got %+v", seq, l)
		}
		delete(s.flight, l.queue[0].Seq)
	}
	if c := cap(q); c > 10*waiting {
		t.Fatalf("%d lanes wait in a queue of capacity %d", waiting, c)
	}
}

// TestOneBusyShardAmongManyIsReadInBatchesThatFitItsBytes is about a limit that the store need not cut off by bytes: to find out where
// costs another read.
func TestOneBusyShardAmongManyIsReadInBatchesThatFitItsBytes(t *testing.T) {
	const shards, payload = 64, 1000
	l := newLedger(Config{}.withDefaults())
	var owned []storage.Ownership
	for shard := range int32(shards) {
		owned = append(owned, storage.Ownership{Shard: shard})
	}
	l.own(owned, 0, 0)
	p, _ := l.plan(time.Now())
	rows := make([]storage.Item, p.reads[0].Limit)
	for i := range rows {
		rows[i] = storage.Item{
			Position: storage.Position{Seq: int64(i + 1)},
			Message:  Message{Payload: make([]byte, payload)},
		}
	}
	l.accept(p, rows, nil) // shard 0 has more, and nobody else has any
	l.mu.Lock()
	for _, e := range l.shards[0].flight {
		l.forget(e)
	}
	l.mu.Unlock()
	p, ok := l.plan(time.Now())
	if limit := p.reads[0].Limit; !ok || limit*payload > p.bytes || limit*payload < p.bytes/2 {
		t.Errorf("got a limit of %d events of %d bytes, want them to fill %d bytes", limit, payload, p.bytes)
	}
}

// TestReadingAgainCostsLittle counts how often the shards are read from their beginning in an hour
// while nothing happens: about once a minute, and the more events are left alone again each time,
// the rarer.
func TestReadingAgainCostsLittle(t *testing.T) {
	for left, want := range map[int]int{0: 60, 10_000: 60, 600_000: 6, 1 << 40: 0} {
		l := newLedger(Config{}.withDefaults())
		l.own([]storage.Ownership{{Shard: 1}}, 0, 0)
		now := l.rewound
		times := 0
		for range 60 * 60 {
			before := l.rewound
			l.vain = left // as a read of all that is held finds
			now = now.Add(time.Second)
			l.plan(now)
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
	l := newLedger(Config{}.withDefaults())
	now, times := l.rewound, 0
	for range 10_000 {
		before := l.rewound
		l.vain = 100_000
		now = now.Add(time.Millisecond)
		l.mu.Lock()
		l.want(now)
		l.lookAgain(now)
		l.mu.Unlock()
		if l.rewound != before {
			times++
		}
	}
	if times < 5 || times > 10 { // a second's reading each time
		t.Errorf("all was read again %d times in ten seconds", times)
	}
}
