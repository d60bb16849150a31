package failures_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// TestRowsThatBecomeVisibleLateAreNotSkipped commits in another order than it enqueues. A naive
// reader, which continues behind the last number it saw, proves that events could have been missed.
func TestRowsThatBecomeVisibleLateAreNotSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	recording := &outboxtest.RecordingPublisher{}
	// Nothing is settled before the naive reader has found all it can.
	held := make(chan struct{})
	w.run(w.store, publisherFunc(func(ctx context.Context, m *outbox.Message) error {
		<-held
		return recording.Publish(ctx, m)
	}), outbox.Config{
		Lease:          patience * 2,
		PublishTimeout: patience,
		Concurrency:    1,
		MaxInFlight:    64,
		Logger:         silent(),
	})
	w.eventually("the relay has begun", func() bool {
		return query[int](w, `SELECT count(*) FROM outbox_relay`) == 1
	})

	seen, last := w.naiveCursor()
	committed := w.commitInAnyOrder(5, 100) + w.commitBehind(last)
	close(held)
	messages := w.published(recording, committed)
	w.once(messages, committed)
	w.eventually("all is settled", func() bool { return w.pending() == 0 })
	if n := seen(); n >= committed {
		t.Fatalf("the naive reader saw %d of %d events: no row became visible late", n, committed)
	}
}

// commitBehind commits an event whenever the naive reader has seen one with a higher number. It
// returns how many events it has committed.
func (w *world) commitBehind(last *atomic.Int64) int {
	w.Helper()
	late := w.begin()
	_, err := w.store.Enqueue(w.Context(), late, thing("late", 1))
	w.must(err)
	w.enqueue(thing("early", 1))
	early := query[int64](w, `SELECT seq FROM outbox WHERE key = 'early'`)
	w.eventually("the naive reader has passed it by", func() bool { return last.Load() >= early })
	w.must(late.Commit(w.Context()))
	return 2
}

// naiveCursor starts a reader that reads behind the highest number it has seen. The function end
// stops it and returns how many events it has seen.
func (w *world) naiveCursor() (end func() int, last *atomic.Int64) {
	seen := 0
	last = new(atomic.Int64)
	read := func() {
		rows, err := w.pool.Query(w.Context(), `SELECT seq FROM outbox WHERE seq > $1
			ORDER BY seq`, last.Load())
		w.must(err)
		seqs, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		w.must(err)
		if seen += len(seqs); len(seqs) > 0 {
			last.Store(seqs[len(seqs)-1])
		}
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				read()
			}
		}
	}()
	return func() int {
		close(stop)
		<-done
		return seen
	}, last
}

// commitInAnyOrder runs producers that each keep several transactions open at a time. It returns
// how many events were committed.
func (w *world) commitInAnyOrder(producers, each int) int {
	var committed atomic.Int64
	var running sync.WaitGroup
	for p := range producers {
		running.Go(func() {
			random := rand.New(rand.NewPCG(uint64(p), 7))
			var open []pgx.Tx
			for n := range each {
				tx, err := w.pool.Begin(w.Context())
				w.must(err)
				_, err = w.store.Enqueue(w.Context(), tx, thing(fmt.Sprintf("%d/%d", p, n), 1))
				w.must(err)
				if open = append(open, tx); len(open) < 2 && n < each-1 {
					continue
				}
				last := random.IntN(len(open)) // half of the time, the younger one ends first
				for i := range open {
					w.must(open[(last+i)%len(open)].Commit(w.Context()))
					committed.Add(1)
				}
				open = nil
			}
		})
	}
	running.Wait()
	return int(committed.Load())
}
