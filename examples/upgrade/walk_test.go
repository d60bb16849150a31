package upgrade_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	next "github.com/outboxgen/outboxgen/examples/upgrade/events"
	old "github.com/outboxgen/outboxgen/examples/upgrade/release1/events"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// stream is a broker, slow at first, that records what is published.
type stream struct {
	fast   atomic.Bool
	mu     sync.Mutex
	ids    map[outbox.ID]bool
	steps  map[int64]int64 // the next step of each walk
	again  int             // events that were published again
	faults []string
}

func newStream() *stream { return &stream{ids: map[outbox.ID]bool{}, steps: map[int64]int64{}} }

// Publish implements outbox.Publisher. A walk's steps must come one after the other, without a gap.
func (s *stream) Publish(ctx context.Context, m *outbox.Message) error {
	if !s.fast.Load() {
		select { // the broker's round trip
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var e next.StepTakenV1
	if err := json.Unmarshal(m.Payload, &e); err != nil {
		return outbox.Permanent(errors.New("no step"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids[m.ID] {
		s.again++
		return nil
	}
	s.ids[m.ID] = true
	if e.Step != s.steps[e.Walk] {
		s.faults = append(s.faults, "a walk is not in order")
	}
	s.steps[e.Walk] = e.Step + 1
	return nil
}

func (s *stream) published() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ids)
}

// producer enqueues the steps of its own walks, in order, until it is stopped.
type producer struct {
	stop func() (steps map[int64]int64) // the number of steps of each walk
}

// enqueue adds events to the outbox of one release or the other.
type enqueue func(ctx context.Context, tx pgx.Tx, walk, from, to int64) error

func (w *world) enqueueOld(ctx context.Context, tx pgx.Tx, walk, from, to int64) error {
	var steps []old.Event
	for step := from; step < to; step++ {
		steps = append(steps, old.StepTakenV1{Walk: walk, Step: step})
	}
	_, err := w.old.Enqueue(ctx, tx, steps...)
	return err
}

func (w *world) enqueueNext(ctx context.Context, tx pgx.Tx, walk, from, to int64) error {
	var steps []next.Event
	for step := from; step < to; step++ {
		steps = append(steps, next.StepTakenV1{Walk: walk, Step: step})
	}
	_, err := w.next.Enqueue(ctx, tx, steps...)
	return err
}

// produce starts a producer of ten walks. Its transactions enqueue a few steps by INSERT, or many
// by COPY.
func (w *world) produce(firstWalk int64, add enqueue) *producer {
	ctx, cancel := context.WithCancel(w.Context())
	steps := map[int64]int64{}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for n := int64(0); ctx.Err() == nil; n++ {
			walk := firstWalk + n%10
			from, to := steps[walk], steps[walk]+1+n%20
			err := pgx.BeginFunc(w.Context(), w.pool, func(tx pgx.Tx) error {
				return add(w.Context(), tx, walk, from, to)
			})
			if err != nil {
				w.Errorf("enqueue: %v", err)
				return
			}
			steps[walk] = to
			select { // the transaction's own work
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
	stop := sync.OnceValue(func() map[int64]int64 {
		cancel()
		<-ended
		return steps
	})
	w.Cleanup(func() { stop() })
	return &producer{stop}
}
