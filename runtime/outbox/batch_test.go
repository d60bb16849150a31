package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// batches is a publisher of batches: it records the messages that it acknowledges, and decides with
// answer what a batch comes to.
type batches struct {
	outboxtest.RecordingPublisher
	answer func(ctx context.Context, batch []*outbox.Message) []error

	mu    sync.Mutex
	sizes []int
}

func (p *batches) PublishBatch(ctx context.Context, batch []*outbox.Message) []error {
	p.mu.Lock()
	p.sizes = append(p.sizes, len(batch))
	p.mu.Unlock()
	errs := p.answer(ctx, batch)
	for i, m := range batch {
		if len(errs) == len(batch) && errs[i] == nil {
			_ = p.RecordingPublisher.Publish(ctx, m)
		}
	}
	return errs
}

// largest returns how many messages the largest batch had.
func (p *batches) largest() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, size := range p.sizes {
		n = max(n, size)
	}
	return n
}

// publishAll has a relay publish events of many keys, until nothing is pending, and returns what
// was acknowledged.
func publishAll(t *testing.T, p *batches, keys, each int) ([]outbox.Message, outbox.Stats) {
	t.Helper()
	store := outboxtest.NewMemStore(16)
	tx := store.Begin()
	var events []outbox.Event
	for n := range each {
		for k := range keys {
			events = append(events, outboxtest.Event{Entity: fmt.Sprint("key ", k), N: int64(n)})
		}
	}
	if _, err := tx.Enqueue(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	relay, err := outbox.NewRelay(store, p, outbox.Config{
		Lease: time.Minute, PublishTimeout: 200 * time.Millisecond, PollInterval: time.Millisecond,
		MinRetryDelay: time.Millisecond, MaxRetryDelay: 5 * time.Millisecond, MaxAttempts: 50,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- relay.Run(ctx) }()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * time.Minute); len(store.Pending()) > 0; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%d events are pending after two minutes", len(store.Pending()))
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	return p.Messages(), relay.Stats()
}

// TestWhateverABatchComesToNothingIsLostAndTheOrderIsKept has batches of every kind: those that are
// acknowledged, fail in part, are unreachable or silent in part, panic, or come back without an
// outcome for each message.
func TestWhateverABatchComesToNothingIsLostAndTheOrderIsKept(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for name, answer := range map[string]func(
		ctx context.Context, calls int64, batch []*outbox.Message,
	) []error{
		"acknowledged": func(_ context.Context, _ int64, batch []*outbox.Message) []error {
			return make([]error, len(batch))
		},
		"in part refused": func(_ context.Context, n int64, batch []*outbox.Message) []error {
			errs := make([]error, len(batch))
			errs[int(n)%len(batch)] = refused
			return errs
		},
		"in part unreachable": func(_ context.Context, n int64, batch []*outbox.Message) []error {
			errs := make([]error, len(batch))
			if n%5 == 0 {
				errs[0] = outbox.Unreachable(refused)
			}
			return errs
		},
		"in part silent": func(ctx context.Context, n int64, batch []*outbox.Message) []error {
			errs := make([]error, len(batch))
			if n%10 == 0 {
				<-ctx.Done()
				errs[len(batch)-1] = ctx.Err()
			}
			return errs
		},
		"no outcome": func(context.Context, int64, []*outbox.Message) []error { return nil },
		"an outcome too many": func(_ context.Context, _ int64, batch []*outbox.Message) []error {
			return make([]error, len(batch)+1)
		},
		"a panic": func(context.Context, int64, []*outbox.Message) []error { panic("secret") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const keys, each = 40, 10
			var calls atomic.Int64
			p := &batches{}
			p.answer = func(ctx context.Context, batch []*outbox.Message) []error {
				return answer(ctx, calls.Add(1), batch)
			}
			messages, stats := publishAll(t, p, keys, each)
			if stats.Dead > 0 || len(messages) != keys*each {
				t.Errorf("got %d messages and %d dead letters, want each event once",
					len(messages), stats.Dead)
			}
			if p.largest() < 2 {
				t.Error("nothing was published together")
			}
			inOrder(t, messages)
		})
	}
}

// inOrder fails if the events of a key are not in the order in which they were enqueued.
func inOrder(t *testing.T, messages []outbox.Message) {
	t.Helper()
	last := map[string]string{}
	for _, m := range messages {
		if string(m.Payload) <= last[m.Key] {
			t.Errorf("%s follows %s", m.Payload, last[m.Key])
		}
		last[m.Key] = string(m.Payload)
	}
}

// TestABatchHasOneEventOfAKey has one key that is busy, and others.
func TestABatchHasOneEventOfAKey(t *testing.T) {
	t.Parallel()
	p := &batches{}
	p.answer = func(_ context.Context, batch []*outbox.Message) []error {
		keys := map[string]bool{}
		for _, m := range batch {
			if keys[m.Key] {
				t.Errorf("a batch has two events of %s", m.Key)
			}
			keys[m.Key] = true
		}
		return make([]error, len(batch))
	}
	publishAll(t, p, 3, 200)
}

// TestAPermanentFailureTakesNoNeighbourWithIt has one event of each batch never be taken.
func TestAPermanentFailureTakesNoNeighbourWithIt(t *testing.T) {
	t.Parallel()
	p := &batches{}
	p.answer = func(_ context.Context, batch []*outbox.Message) []error {
		errs := make([]error, len(batch))
		for i, m := range batch {
			if m.Key == "key 3" {
				errs[i] = outbox.Permanent(errors.New("never"))
			}
		}
		return errs
	}
	const keys, each = 20, 5
	messages, stats := publishAll(t, p, keys, each)
	single := 0 // published by Publish, which takes everything
	for _, m := range messages {
		if m.Key == "key 3" {
			single++
		}
	}
	if int(stats.Dead)+single != each || len(messages)-single != (keys-1)*each {
		t.Errorf("got %d dead letters and %d messages, %d of the bad key", stats.Dead,
			len(messages), single)
	}
}
