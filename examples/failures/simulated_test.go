package failures_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// The tests in this file simulate minutes on the store in memory, with the clock of
// testing/synctest.

const shards = 16

// inBubble runs f in a bubble of testing/synctest, on one processor. With more, the race detector
// of Go 1.26 crashes now and then (SIGSEGV), since two goroutines that look at the channels of
// expired timers at once share the bubble's race context. On one processor the detector finds the
// same races, because it compares by the happens-before relation.
func inBubble(t *testing.T, f func(*testing.T)) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, f)
}

// memory returns a store in memory with the events committed, and their ids.
func memory(t *testing.T, list ...outbox.Event) (*outboxtest.MemStore, []outbox.ID) {
	t.Helper()
	store := outboxtest.NewMemStore(shards)
	tx := store.Begin()
	ids, err := tx.Enqueue(t.Context(), list)
	if err := errors.Join(err, tx.Commit()); err != nil {
		t.Fatal(err)
	}
	return store, ids
}

// things returns n events for each of a number of keys.
func things(keys, n int) (list []outbox.Event) {
	for i := range n {
		for k := range keys {
			list = append(list, outboxtest.Event{Entity: fmt.Sprint("key ", k), N: int64(i + 1)})
		}
	}
	return list
}

func TestABrokerThatIsDownFor20MinutesCostsNoAttempts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		memory, ids := memory(t, things(20, 25)...)
		store := &counting{Store: memory}
		w := &world{T: t}
		var tries atomic.Int64
		var up atomic.Bool
		recording := &outboxtest.RecordingPublisher{}
		c := outbox.Config{MaxAttempts: 2, Logger: silent()} // all else as in production
		relay, stop := w.run(store, publisherFunc(func(ctx context.Context,
			m *outbox.Message) error {
			if !up.Load() {
				tries.Add(1)
				return outbox.Unreachable(errors.New("connection refused"))
			}
			return recording.Publish(ctx, m)
		}), c)
		time.Sleep(20 * time.Minute)
		if s := relay.Stats(); s.Dead != 0 || !s.Open {
			t.Fatalf("during the outage: got %+v, want no dead letter and an open breaker", s)
		}
		if n := tries.Load(); n < 20 || n > 1000 {
			t.Fatalf("the broker was tried %d times in 20 minutes, want some dozens", n)
		}
		up.Store(true)
		time.Sleep(time.Minute)
		stop()
		w.once(recording.Messages(), len(ids))
		w.equal("attempts charged", store.charged.Load(), 0)
	})
}

// TestTheLeaseIsRenewedWhileABatchTakesLonger has publishes last several times the lease, while
// another relay waits for the shards.
func TestTheLeaseIsRenewedWhileABatchTakesLonger(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const lease, each, n = 30 * time.Second, 5 * time.Second, 24
		store, _ := memory(t, things(1, n)...)
		w := &world{T: t}
		recording := &outboxtest.RecordingPublisher{}
		slow := publisherFunc(func(ctx context.Context, m *outbox.Message) error {
			time.Sleep(each)
			return recording.Publish(ctx, m)
		})
		c := outbox.Config{Lease: lease, Logger: silent()}
		first, _ := w.run(store, slow, c)
		time.Sleep(each / 2)
		second, _ := w.run(store, slow, c)
		began := time.Now()
		w.published(recording, n)
		synctest.Wait()
		w.equal("pending", len(store.Pending()), 0)
		w.once(recording.Messages(), n)
		if took := time.Since(began); took < 3*lease {
			t.Errorf("the batch took %v, want several leases of %v", took, lease)
		}
		a, b := first.Stats(), second.Stats()
		w.equal("leases lost, settles lost",
			fmt.Sprint(a.LeasesLost+b.LeasesLost, a.LostSettles+b.LostSettles), "0 0")
	})
}

// hiding is a store that hides one event from the relay from some time on, as if an operator had
// deleted its row.
type hiding struct {
	*outboxtest.MemStore
	mu   sync.Mutex
	gone outbox.ID
}

func (s *hiding) hide(id outbox.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = id
}

func (s *hiding) without(items []storage.Item) []storage.Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(items, func(i storage.Item) bool { return i.ID == s.gone })
}

func (s *hiding) Read(ctx context.Context, p storage.ReadParams) (storage.ReadResult, error) {
	r, err := s.MemStore.Read(ctx, p)
	return storage.ReadResult{Items: s.without(r.Items)}, err
}

func (s *hiding) ReadDue(
	ctx context.Context, p storage.ReadDueParams,
) (storage.ReadDueResult, error) {
	r, err := s.MemStore.ReadDue(ctx, p)
	return storage.ReadDueResult{Items: s.without(r.Items)}, err
}

// ReadKeys is called for one key here. It reads one event more than asked for, and returns no more
// than asked for.
func (s *hiding) ReadKeys(
	ctx context.Context, p storage.ReadKeysParams,
) (storage.ReadKeysResult, error) {
	limit := p.Keys[0].Limit
	p.Keys = slices.Clone(p.Keys)
	p.Keys[0].Limit++
	r, err := s.MemStore.ReadKeys(ctx, p)
	items := s.without(r.Items)
	return storage.ReadKeysResult{Items: items[:min(len(items), limit)]}, err
}

func TestAFailedEventThatIsDeletedByHandHoldsItsKeyNoLonger(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		memory, ids := memory(t, things(1, 3)...)
		store := &hiding{MemStore: memory}
		w := &world{T: t}
		recording := &outboxtest.RecordingPublisher{}
		relay, _ := w.run(store, &outboxtest.FaultyPublisher{Next: recording,
			Decide: func(m *outbox.Message) outboxtest.Fault {
				if m.ID == ids[0] {
					return outboxtest.Refuse
				}
				return outboxtest.Deliver
			}}, outbox.Config{
			MinRetryDelay: time.Hour, MaxRetryDelay: 24 * time.Hour, Logger: silent(),
		})
		time.Sleep(10 * time.Second)
		w.equal("held keys, published", fmt.Sprint(relay.Stats().Held, len(recording.Messages())),
			"1 0")
		store.hide(ids[0])
		time.Sleep(2 * time.Minute)
		messages := recording.Messages()
		w.once(messages, 2)
		w.equal("the first to go on", messages[0].ID, ids[1])
	})
}

// TestRetriesAfterACrashAreInTime has a relay vanish. Its successor charges attempts before it
// publishes, and the broker then refuses an event.
func TestRetriesAfterACrashAreInTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store, ids := memory(t, things(1, 60)...)
		w := &world{T: t}
		vanished := w.join(store, time.Second)
		w.equal("shards of the vanished", len(w.takeAll(store, vanished)), shards)
		time.Sleep(2 * time.Second)

		var refused atomic.Int64
		recording := &outboxtest.RecordingPublisher{}
		began := time.Now()
		w.run(store, &outboxtest.FaultyPublisher{Next: recording,
			Decide: func(m *outbox.Message) outboxtest.Fault {
				if m.ID == ids[0] && refused.Add(1) <= 9 {
					return outboxtest.Refuse
				}
				return outboxtest.Deliver
			}}, outbox.Config{
			MinRetryDelay: time.Millisecond, MaxRetryDelay: time.Second, Logger: silent(),
		})
		for len(recording.Messages()) < len(ids) {
			time.Sleep(100 * time.Millisecond)
			if time.Since(began) > 10*time.Second {
				t.Fatalf("%d of %d events after %v and %d refusals: its retries are at most half "+
					"a second apart",
					len(recording.Messages()), len(ids), time.Since(began), refused.Load())
			}
		}
	})
}

func TestAnOperatorSeesHowManyEventsWaitAndForHowLong(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store, _ := memory(t, things(3, 2)...)
		w := &world{T: t}
		relay, _ := w.run(store, publisherFunc(func(context.Context, *outbox.Message) error {
			return outbox.Unreachable(errors.New("connection refused"))
		}), outbox.Config{Logger: silent()})
		time.Sleep(5 * time.Minute)
		b := relay.Stats().Backlog
		w.equal("pending and dead", fmt.Sprint(b.Pending, b.DeadLetters), "6 0")
		if b.Oldest < 4*time.Minute || b.Oldest > 5*time.Minute {
			t.Errorf("the oldest event waits for %v, want almost 5 minutes", b.Oldest)
		}
	})
}
