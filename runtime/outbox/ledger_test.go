package outbox

import (
	"testing"
	"time"
)

func TestFifoThatNeverRunsEmptyStaysSmall(t *testing.T) {
	var q fifo
	s := &shard{flight: map[int64]*event{}}
	newLane := func(seq int64) *lane {
		l := &lane{shard: s}
		l.queue = []*event{{Message: &Message{Position: Position{Seq: seq}}, lane: l}}
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
	var owned []Ownership
	for shard := range int32(shards) {
		owned = append(owned, Ownership{Shard: shard})
	}
	l.own(owned, 0, 0)
	p, _ := l.plan(time.Now())
	rows := make([]Message, p.reads[0].Limit)
	for i := range rows {
		rows[i] = Message{Position: Position{Seq: int64(i + 1)}, Payload: make([]byte, payload)}
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
