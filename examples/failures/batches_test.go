package failures_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// The tests in this file run on a simulated clock, on the store in memory.

// batchFunc makes a publisher that takes batches of another one and a function.
type batchFunc struct {
	outbox.Publisher
	publish func(ctx context.Context, batch []*outbox.Message) []error
}

func (f batchFunc) PublishBatch(ctx context.Context, batch []*outbox.Message) []error {
	return f.publish(ctx, batch)
}

// all publishes a batch.
func all(ctx context.Context, p outbox.Publisher, batch []*outbox.Message) []error {
	return outboxtest.InBatches(p).PublishBatch(ctx, batch)
}

// inOrder fails unless the events of each key were published in order, first of all. Those that
// were published before may be repeated.
func (w *world) inOrder(messages []outbox.Message, keys, each int) {
	w.Helper()
	next := map[string]int64{}
	for i := range messages {
		m := &messages[i]
		if n := number(m); n > next[m.Key]+1 {
			w.Fatalf("key %s: %d was published after %d", m.Key, n, next[m.Key])
		} else if n == next[m.Key]+1 {
			next[m.Key] = n
		}
	}
	w.equal("keys", len(next), keys)
	for key, n := range next {
		w.equal("published of "+key, n, each)
	}
}

// TestABatchWithoutOutcomesIsNobodysFault has every batch end without an outcome for each message:
// its events are published one by one, and none is charged an attempt.
func TestABatchWithoutOutcomesIsNobodysFault(t *testing.T) {
	for name, bad := range map[string]func(errs []error) []error{
		"nil":     func([]error) []error { return nil },
		"too few": func(errs []error) []error { return errs[1:] },
		"too many": func(errs []error) []error {
			return append(errs, outbox.Permanent(errors.New("none of these")))
		},
		"panic": func([]error) []error { panic("the payload") },
	} {
		t.Run(name, func(t *testing.T) {
			var batches atomic.Int64
			var log records
			recording := &outboxtest.RecordingPublisher{}
			p := batchFunc{recording, func(_ context.Context, batch []*outbox.Message) []error {
				batches.Add(1)
				return bad(make([]error, len(batch)))
			}}
			simulateWith(t, outbox.Config{Logger: log.logger()}, p,
				func(w *world, store *outboxtest.MemStore, relay *outbox.Relay) {
					commit(w.T, store, things(50, 4)...)
					time.Sleep(time.Minute)
					w.equal("left", len(store.Pending()), 0)
					w.once(recording.Messages(), 200)
					w.inOrder(recording.Messages(), 50, 4)
					w.equal("attempts charged, dead, retried", fmt.Sprint(w.reads.charged.Load(),
						relay.Stats().Dead, relay.Stats().Retried), "0 0 0")
				})
			n := log.with("published one by one")
			if batches.Load() == 0 || int64(n) != batches.Load() {
				t.Errorf("%d batches, and %d lines that say how they ended", batches.Load(), n)
			}
			if log.with("the payload") > 0 {
				t.Error("the log shows what the publisher panicked with")
			}
		})
	}
}

// TestABatchWithoutOutcomesIsNotWaitedForOneByOne has nobody answer the messages by themselves
// either: a worker waits for one of them, and not for each.
func TestABatchWithoutOutcomesIsNotWaitedForOneByOne(t *testing.T) {
	b := newBroker()
	p := batchFunc{b, func(context.Context, []*outbox.Message) []error { return nil }}
	simulate(t, p, func(w *world, store *outboxtest.MemStore, relay *outbox.Relay) {
		commit(w.T, store, about{"mute", 0})
		time.Sleep(time.Second) // it has answered
		b.set("mute", true)
		commit(w.T, store, abouts(200, "mute")...)
		time.Sleep(5 * time.Minute)
		w.equal("Open", relay.Stats().Open, true)
		b.set("mute", false)
		time.Sleep(time.Minute)
		w.equal("left", len(store.Pending()), 0)
		w.equal("attempts charged", w.reads.charged.Load(), 0)
	})
}

// TestBatchPublishersThatMisbehaveLoseNothing has batches end in every way by turns, after some of
// their messages have arrived.
func TestBatchPublishersThatMisbehaveLoseNothing(t *testing.T) {
	recording := &outboxtest.RecordingPublisher{}
	var turn atomic.Int64
	ways := []func(ctx context.Context, batch []*outbox.Message, errs []error) []error{
		func(context.Context, []*outbox.Message, []error) []error { panic("no more") },
		func(context.Context, []*outbox.Message, []error) []error { return nil },
		func(_ context.Context, _ []*outbox.Message, errs []error) []error { return errs[1:] },
		func(_ context.Context, _ []*outbox.Message, errs []error) []error {
			return append(errs, nil)
		},
		func(ctx context.Context, batch []*outbox.Message, errs []error) []error { // hangs
			<-ctx.Done()
			for i := range errs {
				errs[i] = ctx.Err()
			}
			return errs
		},
		func(_ context.Context, _ []*outbox.Message, errs []error) []error { // refuses one
			errs[len(errs)-1] = errors.New("not this one")
			return errs
		},
		func(_ context.Context, _ []*outbox.Message, errs []error) []error { // is lost for some
			for i := range errs[len(errs)/2:] {
				errs[len(errs)/2+i] = outbox.Unreachable(errors.New("connection lost"))
			}
			return errs
		},
		func(_ context.Context, _ []*outbox.Message, errs []error) []error { return errs },
	}
	p := batchFunc{recording, func(ctx context.Context, batch []*outbox.Message) []error {
		n := int(turn.Add(1)) % len(ways)
		some := batch
		if n < len(ways)-1 && n%2 == 0 {
			some = batch[:len(batch)/2]
		}
		all(ctx, recording, some)
		errs := make([]error, len(batch))
		for i := range errs[len(some):] {
			errs[len(some)+i] = outbox.Unreachable(errors.New("not sent"))
		}
		return ways[n](ctx, batch, errs)
	}}
	simulate(t, p, func(w *world, store *outboxtest.MemStore, relay *outbox.Relay) {
		const keys, each = 60, 40
		for n := range each {
			var list []outbox.Event
			for k := range keys {
				list = append(list,
					outboxtest.Event{Entity: fmt.Sprint("key ", k), N: int64(n + 1)})
			}
			commit(w.T, store, list...)
			time.Sleep(200 * time.Millisecond)
		}
		time.Sleep(time.Hour)
		w.equal("left, dead", fmt.Sprint(len(store.Pending()), relay.Stats().Dead), "0 0")
		w.inOrder(recording.Messages(), keys, each)
		if turn.Load() < int64(2*len(ways)) {
			w.Errorf("%d batches, want every way to have come up", turn.Load())
		}
	})
}

// TestOneBadEventOfABatchCostsOnlyItself has a batch fail for one of its messages, each time.
func TestOneBadEventOfABatchCostsOnlyItself(t *testing.T) {
	for name, fault := range map[string]outboxtest.Fault{
		"refused": outboxtest.Refuse, "refused for good": outboxtest.RefuseForGood,
	} {
		t.Run(name, func(t *testing.T) {
			recording := &outboxtest.RecordingPublisher{}
			p := outboxtest.InBatches(&outboxtest.FaultyPublisher{Next: recording,
				Decide: func(m *outbox.Message) outboxtest.Fault {
					if m.Key == "key 7" && number(m) == 2 {
						return fault
					}
					return outboxtest.Deliver
				}})
			simulateWith(t, outbox.Config{
				Logger: silent(), MaxAttempts: 3, MaxRetryDelay: time.Second,
			}, p, func(w *world, store *outboxtest.MemStore, relay *outbox.Relay) {
				commit(w.T, store, things(20, 3)...)
				time.Sleep(time.Minute)
				w.once(recording.Messages(), 59)
				want := map[outboxtest.Fault]string{outboxtest.Refuse: "1 2",
					outboxtest.RefuseForGood: "1 0"}[fault]
				w.equal("dead, retried",
					fmt.Sprint(relay.Stats().Dead, relay.Stats().Retried), want)
				w.equal("left", len(store.Pending()), 0)
			})
		})
	}
}

// TestEventsThatMayHaveEndedTheirProcessTravelAlone: their attempt began with a relay that
// vanished, and never ended. The others travel in batches.
func TestEventsThatMayHaveEndedTheirProcessTravelAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store, ids := memory(t, things(40, 1)...)
		w := &world{T: t}
		vanished := w.join(store, time.Second)
		p := storage.SettleParams{Relay: vanished, Owned: w.takeAll(store, vanished)}
		for _, row := range store.Pending() {
			p.Retries = append(p.Retries, storage.Retry{
				Position: row.Position, Attempts: 1, Interrupted: true,
			})
		}
		_, err := store.Settle(t.Context(), p)
		w.must(err)
		time.Sleep(2 * time.Second)

		suspects := map[outbox.ID]bool{}
		for _, id := range ids {
			suspects[id] = true
		}
		var mu sync.Mutex
		batches, under := 0, 0
		recording := &outboxtest.RecordingPublisher{}
		singly := publisherFunc(func(ctx context.Context, m *outbox.Message) error {
			mu.Lock()
			if suspects[m.ID] {
				under++
			}
			if under > 1 {
				t.Errorf("%d events that may have ended their process are under way", under)
			}
			mu.Unlock()
			time.Sleep(time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			if suspects[m.ID] {
				under--
			}
			return recording.Publish(ctx, m)
		})
		w.run(store, batchFunc{singly, func(ctx context.Context, batch []*outbox.Message) []error {
			mu.Lock()
			defer mu.Unlock()
			batches++
			for _, m := range batch {
				if suspects[m.ID] {
					t.Errorf("event %s, which may have ended its process, is in a batch", m.ID)
				}
			}
			return all(ctx, recording, batch)
		}}, outbox.Config{Logger: silent()})
		for n := range 10 {
			var list []outbox.Event
			for k := range 40 {
				list = append(list, outboxtest.Event{Entity: fmt.Sprint("other ", k), N: int64(n)})
			}
			commit(t, store, list...)
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		w.once(recording.Messages(), 440)
		if batches == 0 {
			t.Error("nothing was in a batch")
		}
	})
}

// TestRunEndsSoonThoughBatchesHang: it waits for the DrainTimeout, cancels them, and leaves their
// events pending.
func TestRunEndsSoonThoughBatchesHang(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBroker()
		store := outboxtest.NewMemStore(shards)
		relay, err := outbox.NewRelay(store, outboxtest.InBatches(b), outbox.Config{
			Lease: time.Hour, PublishTimeout: 20 * time.Minute, DrainTimeout: 10 * time.Second,
			Logger: silent(),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- relay.Run(ctx) }()
		commit(t, store, about{"stuck", 0})
		time.Sleep(time.Minute)
		b.set("stuck", true)
		commit(t, store, abouts(1000, "stuck")...)
		time.Sleep(100 * time.Millisecond)
		cancel()
		began := time.Now()
		if err := <-done; err == nil || !strings.Contains(err.Error(), "not drained in time") {
			t.Errorf("Run: got %v, want an error that says what happened", err)
		}
		if took := time.Since(began); took > time.Minute { // of the simulated clock
			t.Errorf("Run ended after %v", took)
		}
		if n := len(store.Pending()); n != 1000 {
			t.Errorf("%d events are pending, want 1000", n)
		}
	})
}
