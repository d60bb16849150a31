// Package conformance has the suites that implementations must pass: TestStore and TestInbox those
// of a database, TestPublisher and TestSubscriber those of a broker.
package conformance

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// Tx is a business transaction of the store under test.
type Tx interface {
	Enqueue(ctx context.Context, events []outbox.Event, opts ...outbox.EnqueueOption) ([]outbox.ID,
		error)
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}

// Store is what a generated store implements.
type Store interface {
	storage.Store
	storage.Operator
}

// Harness is a store under test, on an empty outbox of its own with 16 shards.
type Harness struct {
	Store Store
	Begin func(ctx context.Context) (Tx, error)
}

// Shards is the number of shards that TestStore asks of a Harness.
const Shards = 16

// TestStore checks that a store keeps the promises of storage.Store and storage.Operator, by
// itself, and with relays whose publishers take single messages and batches. Open is called for
// every test and may register clean-ups with t.
func TestStore(t *testing.T, open func(t *testing.T) Harness) {
	run := func(name string, test func(*testing.T, *world), inBatches bool) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			test(t, &world{T: t, Harness: h, outbox: h.Store, inBatches: inBatches})
		})
	}
	for name, test := range storeTests {
		run(name, test, false)
	}
	for name, test := range relayTests {
		run(name, test, false)
		run(name+", in batches", test, true)
	}
}

// world has one test's store, with helpers that fail the test.
type world struct {
	*testing.T
	Harness
	outbox    storage.Store // Harness.Store, or that beside an inbox
	inBatches bool          // the relays' publishers take batches
}

func (w *world) begin() Tx {
	w.Helper()
	tx, err := w.Begin(w.Context())
	w.must(err)
	return tx
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// enqueue commits events in one transaction.
func (w *world) enqueue(events ...outbox.Event) []outbox.ID {
	w.Helper()
	tx := w.begin()
	ids, err := tx.Enqueue(w.Context(), events)
	w.must(err)
	w.must(tx.Commit(w.Context()))
	return ids
}

// join registers a relay that owns all free shards.
func (w *world) join(lease time.Duration) (storage.ID, []storage.Ownership) {
	w.Helper()
	relay := w.register(lease)
	return relay, w.take(relay, Shards, nil)
}

func (w *world) register(lease time.Duration) storage.ID {
	w.Helper()
	relay := uuid.New()
	_, err := w.outbox.Join(w.Context(), storage.JoinParams{Relay: relay, Lease: lease})
	w.must(err)
	return relay
}

func (w *world) take(relay storage.ID, n int, held []storage.Ownership) []storage.Ownership {
	w.Helper()
	taken, err := w.outbox.Take(w.Context(), storage.TakeParams{Relay: relay, Max: n, Held: held})
	w.must(err)
	return taken.Owned
}

// settle returns how many events were changed.
func (w *world) settle(p storage.SettleParams) int {
	w.Helper()
	changed, err := w.outbox.Settle(w.Context(), p)
	w.must(err)
	return changed.Total()
}

func (w *world) deadLetters(limit int) []storage.DeadLetter {
	w.Helper()
	list, err := w.Store.ListDeadLetters(w.Context(), storage.ListDeadLettersParams{Limit: limit})
	w.must(err)
	return list.DeadLetters
}

func (w *world) replay(ids ...storage.ID) int {
	w.Helper()
	done, err := w.Store.ReplayDeadLetters(w.Context(), storage.ReplayDeadLettersParams{IDs: ids})
	w.must(err)
	return done.Replayed
}

// all reads all events, as a relay does that has just joined.
func (w *world) all() []storage.Item {
	w.Helper()
	return w.read(nil, 1<<30)
}

func (w *world) read(known []int64, maxBytes int) []storage.Item {
	w.Helper()
	p := storage.ReadParams{Known: known, MaxBytes: maxBytes}
	for i := range Shards {
		p.Shards = append(p.Shards, storage.ShardRead{Shard: int32(i), Limit: 100_000})
	}
	result, err := w.outbox.Read(w.Context(), p)
	w.must(err)
	return result.Items
}

func (w *world) due() []storage.Item {
	w.Helper()
	var p storage.ReadDueParams
	for i := range Shards {
		p.Shards = append(p.Shards, storage.ShardRead{Shard: int32(i), After: 1 << 60, Limit: 100})
	}
	result, err := w.outbox.ReadDue(w.Context(), p)
	w.must(err)
	return result.Items
}

func (w *world) equal(what string, got, want any) {
	w.Helper()
	if g, x := fmt.Sprint(got), fmt.Sprint(want); g != x {
		w.Fatalf("%s: got %s, want %s", what, g, x)
	}
}

// expire ends a relay's lease at once, as if the relay had sent no heartbeat. It changes the
// database and not the relay's clock, so that no test has to be faster than a lease.
func (w *world) expire(relay storage.ID) {
	w.Helper()
	_, err := w.outbox.Renew(w.Context(),
		storage.RenewParams{Relay: relay, Lease: time.Microsecond})
	w.must(err)
}

// eventually waits until condition holds.
func (w *world) eventually(what string, condition func() bool) {
	w.Helper()
	deadline, tick := time.After(hangTimeout), time.NewTicker(2*time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			w.Fatalf("not within %v: %s", hangTimeout, what)
		case <-tick.C:
		}
	}
}

func positions(items []storage.Item) []storage.Position {
	out := make([]storage.Position, len(items))
	for i := range items {
		out[i] = items[i].Position
	}
	return out
}

// storeTests check a store method by method.
var storeTests = map[string]func(*testing.T, *world){
	"an event exists if and only if its transaction committed":   testAtomic,
	"a message carries what was enqueued":                        testAttributes,
	"a refused event leaves the transaction usable":              testRefusedEvent,
	"reads are ordered, and bounded in events and bytes":         testReadBounds,
	"reads of keys return the key's events only":                 testReadKeys,
	"the watermark announces what commits late":                  testWatermark,
	"shards have one owner":                                      testMembership,
	"an expired relay loses its shards and knows it":             testExpiry,
	"shards that a relay does not know of are its to take again": testTakeAgain,
	"a settle without ownership changes nothing":                 testFence,
	"a settle of another event changes nothing":                  testSettleAnother,
	"events of every kind are settled together":                  testSettleAll,
	"a settle that fails changes nothing":                        testSettleNothing,
	"a retry waits until it is due":                              testRetry,
	"dead letters are kept, replayed and discarded":              testDeadLetters,
	"replays are counted, and dead letters found by type":        testReplaysAreCounted,
}

func testMembership(t *testing.T, w *world) {
	first, owned := w.join(time.Minute)
	w.equal("shards of the first", len(owned), Shards)
	second, none := w.join(time.Minute)
	w.equal("shards of the second", len(none), 0)
	counts, err := w.Store.Renew(t.Context(),
		storage.RenewParams{Relay: second, Lease: time.Minute})
	w.must(err)
	w.equal("counts", counts, storage.RenewResult{Relays: 2, Shards: Shards})
	w.release(first, owned[:3])
	taken := w.take(second, 2, nil)
	w.equal("taken", len(taken), 2)
	for _, o := range taken {
		if o.Fence != 2 || o.Suspect {
			t.Fatalf("got %+v, want fence 2 and no suspicion", o)
		}
	}
	w.release(first, taken) // not the first's
	_, err = w.Store.Leave(t.Context(), storage.LeaveParams{Relay: first})
	w.must(err)
	w.equal("the rest", len(w.take(second, Shards, taken)), Shards-2)
}

func (w *world) release(relay storage.ID, owned []storage.Ownership) {
	w.Helper()
	_, err := w.Store.Release(w.Context(), storage.ReleaseParams{Relay: relay, Owned: owned})
	w.must(err)
}

func testExpiry(t *testing.T, w *world) {
	gone, owned := w.join(time.Hour)
	w.equal("shards", len(owned), Shards)
	w.expire(gone)
	heir := w.register(time.Minute)
	var taken []storage.Ownership
	w.eventually("the lease ends", func() bool {
		taken = w.take(heir, Shards, nil)
		return len(taken) > 0
	})
	w.equal("taken", len(taken), Shards)
	for _, o := range taken {
		if o.Fence != 2 || !o.Suspect {
			t.Fatalf("got %+v, want fence 2 and suspicion", o)
		}
	}
	_, err := w.Store.Renew(t.Context(), storage.RenewParams{Relay: gone, Lease: time.Minute})
	if err != storage.ErrLeaseLost {
		t.Fatalf("renewing an expired lease: got %v, want ErrLeaseLost", err)
	}
}

func testTakeAgain(t *testing.T, w *world) {
	relay, owned := w.join(time.Minute)
	again := w.take(relay, Shards, owned[2:])
	w.equal("shards", len(again), 2)
	if again[0].Suspect || again[0].Fence != 2 {
		t.Fatalf("got %+v, want fence 2 and no suspicion", again[0])
	}
}
