package outbox

import "testing"

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
