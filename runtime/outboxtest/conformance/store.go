// Package conformance has the suites that implementations must pass: TestStore and TestInbox those
// of a database, TestPublisher and TestSubscriber those of a broker.
package conformance

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
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
// itself and with relays. Open is called for every test and may register clean-ups with t.
func TestStore(t *testing.T, open func(t *testing.T) Harness) {
	for _, tests := range []map[string]func(*testing.T, *world){storeTests, relayTests} {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				h := open(t)
				test(t, &world{T: t, Harness: h, outbox: h.Store})
			})
		}
	}
}

// world has one test's store, with helpers that fail the test.
type world struct {
	*testing.T
	Harness
	outbox storage.Store // Harness.Store, or that beside an inbox
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

func testAtomic(_ *testing.T, w *world) {
	tx := w.begin()
	_, err := tx.Enqueue(w.Context(), []outbox.Event{outboxtest.Event{Entity: "a"}})
	w.must(err)
	w.equal("before the commit", len(w.all()), 0)
	w.must(tx.Rollback(w.Context()))
	w.equal("after a rollback", len(w.all()), 0)
	w.enqueue(outboxtest.Event{Entity: "a"})
	w.equal("after a commit", len(w.all()), 1)
}

func testAttributes(t *testing.T, w *world) {
	id, cause := uuid.New(), uuid.New()
	ctx := outbox.ContextWithTraceparent(t.Context(),
		"00-11111111111111111111111111111111-2222222222222222-01")
	tx := w.begin()
	_, err := tx.Enqueue(ctx, []outbox.Event{outboxtest.Event{Entity: "Zoë ☃", N: 7}},
		outbox.WithID(id), outbox.WithCausation(cause), outbox.WithHeader("tenant", "größe"))
	w.must(err)
	_, err = tx.Enqueue(t.Context(), []outbox.Event{outboxtest.Event{N: 8}})
	w.must(err)
	w.must(tx.Commit(t.Context()))
	messages := w.all()
	if messages[0].Seq > messages[1].Seq {
		messages[0], messages[1] = messages[1], messages[0]
	}
	m := messages[0]
	w.equal("id", m.ID, id)
	w.equal("type", m.TypeName(), "thing.happened@1")
	w.equal("topic", m.Topic, "things")
	w.equal("key", m.Key, "Zoë ☃")
	w.equal("payload", string(m.Payload), `{"entity":"Zoë ☃","n":7}`)
	w.equal("content type", m.ContentType, "application/json")
	w.equal("headers", m.Headers, map[string]string{
		"tenant":      "größe",
		"traceparent": "00-11111111111111111111111111111111-2222222222222222-01",
	})
	w.equal("causation", m.CausationID, cause)
	w.equal("attempts", m.Attempts, 0)
	if m.Source == "" || m.CreatedAt.IsZero() {
		t.Fatalf("source %q, created at %v: want both set", m.Source, m.CreatedAt)
	}
	plain := messages[1]
	w.equal("key, headers and causation of a plain event",
		fmt.Sprint(plain.Key == "", plain.Headers == nil, plain.CausationID),
		fmt.Sprint(true, true, uuid.Nil))
}

func testRefusedEvent(t *testing.T, w *world) {
	tx := w.begin()
	for _, key := range []string{"nul \x00", "broken \xff",
		strings.Repeat("x", outbox.MaxKeyBytes+1)} {
		if _, err := tx.Enqueue(t.Context(),
			[]outbox.Event{outboxtest.Event{Entity: key}}); err == nil {
			t.Fatalf("key %q was accepted", key)
		}
	}
	if _, err := tx.Enqueue(t.Context(), []outbox.Event{outboxtest.Event{}},
		outbox.WithHeader("x", "a\x00b")); err == nil {
		t.Fatal("a header with a NUL was accepted")
	}
	_, err := tx.Enqueue(t.Context(), []outbox.Event{outboxtest.Event{Entity: "fine"}})
	w.must(err)
	w.must(tx.Commit(t.Context()))
	w.equal("events", len(w.all()), 1)
}

func testReadBounds(t *testing.T, w *world) {
	var events []outbox.Event
	for i := range 20 {
		events = append(events, outboxtest.Event{Entity: "same shard", N: int64(i)})
	}
	w.enqueue(events...)
	all := w.all()
	w.equal("events", len(all), 20)
	for i := 1; i < len(all); i++ {
		if all[i].Seq <= all[i-1].Seq {
			t.Fatalf("seq %d follows %d", all[i].Seq, all[i-1].Seq)
		}
	}
	size := len(all[0].Payload)
	w.equal("one byte", len(w.read(nil, 1)), 1)
	w.equal("bytes of two and a half", len(w.read(nil, 2*size+size/2)), 3)
	w.equal("without the known", len(w.read([]int64{all[0].Seq, all[19].Seq}, 1<<30)), 18)
	some, err := w.Store.Read(t.Context(), storage.ReadParams{
		Shards: []storage.ShardRead{{Shard: all[0].Shard, After: all[4].Seq, Limit: 3}},
		Known:  []int64{all[6].Seq}, MaxBytes: 1 << 30,
	})
	w.must(err)
	w.equal("after the fifth, without the seventh", positions(some.Items),
		[]storage.Position{all[5].Position, all[7].Position, all[8].Position})
}

func testReadKeys(t *testing.T, w *world) {
	var events []outbox.Event
	for i := range 30 {
		events = append(events, outboxtest.Event{Entity: fmt.Sprint("key ", i%3), N: int64(i)})
	}
	w.enqueue(events...)
	var p storage.ReadKeysParams
	want := map[string][]storage.Position{}
	for _, m := range w.all() {
		want[m.Key] = append(want[m.Key], m.Position)
	}
	for _, key := range []string{"key 2", "key 0"} {
		all := want[key]
		p.Keys = append(p.Keys, storage.KeyRead{
			Shard: all[0].Shard, Key: key, From: all[1].Seq, To: all[8].Seq, Limit: 5,
		})
	}
	got, err := w.Store.ReadKeys(t.Context(), p)
	w.must(err)
	w.equal("events", positions(got.Items), append(want["key 2"][1:6:6], want["key 0"][1:6]...))
}

// testWatermark has a transaction commit after another one that enqueued later. Whatever the
// watermark does meanwhile, the first one's event lies above it, or is announced as late.
func testWatermark(t *testing.T, w *world) {
	tx := w.begin()
	_, err := tx.Enqueue(t.Context(), []outbox.Event{outboxtest.Event{Entity: "late"}})
	w.must(err)
	w.enqueue(outboxtest.Event{Entity: "early"})
	seen := w.all()[0].Seq
	var at storage.WatermarkResult
	ask := func() {
		t.Helper()
		at, err = w.Store.Watermark(t.Context(),
			storage.WatermarkParams{Seen: seen, State: at.State})
		w.must(err)
	}
	highest, announced := int64(0), int64(1<<60)
	for range 1000 { // the store may move on without the transaction, or wait for it
		ask()
		if highest = max(highest, at.Seq); highest >= seen {
			break
		}
	}
	w.must(tx.Commit(t.Context()))
	late := w.all()[0].Seq
	w.eventually("the watermark covers everything", func() bool {
		ask()
		if at.Late {
			announced = min(announced, at.LateAfter)
		}
		return at.Seq >= seen && !at.Watching
	})
	if late <= highest && announced >= late {
		t.Fatalf("the watermark had passed seq %d, which became visible later, without Late",
			late)
	}
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

func testFence(t *testing.T, w *world) {
	w.enqueue(outboxtest.Event{Entity: "a"}, outboxtest.Event{Entity: "b"},
		outboxtest.Event{Entity: "c"})
	at := positions(w.all())
	relay, owned := w.join(time.Minute)
	stale := make([]storage.Ownership, len(owned))
	for i, o := range owned {
		o.Fence--
		stale[i] = o
	}
	for _, who := range []struct {
		relay storage.ID
		owned []storage.Ownership
	}{{relay, stale}, {uuid.New(), owned}, {relay, nil}} {
		w.equal("changed", w.settle(storage.SettleParams{
			Relay: who.relay, Owned: who.owned, Published: at[2:],
			Retries:     []storage.Retry{{Position: at[0], Attempts: 9}},
			DeadLetters: []storage.DeadLetterMove{{Position: at[1], Attempts: 9}},
		}), 0)
	}
	for _, i := range w.all() {
		w.equal("attempts", i.Attempts, 0)
	}
	n := w.settle(storage.SettleParams{Relay: relay, Owned: owned, Published: at})
	w.equal("changed by the owner", n, 3)
	w.equal("pending", len(w.all()), 0)
}

// testSettleAll settles one event of each kind in one call.
func testSettleAll(t *testing.T, w *world) {
	w.enqueue(outboxtest.Event{Entity: "a"}, outboxtest.Event{Entity: "b"},
		outboxtest.Event{Entity: "c"})
	at := positions(w.all())
	relay, owned := w.join(time.Minute)
	changed, err := w.Store.Settle(t.Context(), storage.SettleParams{
		Relay: relay, Owned: owned, Published: at[:1],
		Retries:     []storage.Retry{{Position: at[1], Attempts: 3, Delay: time.Hour}},
		DeadLetters: []storage.DeadLetterMove{{Position: at[2], Attempts: 4, Error: "no"}},
	})
	w.must(err)
	w.equal("changed", changed, storage.SettleResult{Published: 1, Retries: 1, DeadLetters: 1})
	w.equal("pending", positions(w.all()), at[1:2])
	w.equal("dead letters", w.deadLetters(10)[0].Position, at[2])
}

// testSettleNothing has a call fail half way: nothing of it is recorded.
func testSettleNothing(t *testing.T, w *world) {
	w.enqueue(outboxtest.Event{Entity: "a"}, outboxtest.Event{Entity: "b"})
	at := positions(w.all())
	relay, owned := w.join(time.Minute)
	_, err := w.Store.Settle(t.Context(), storage.SettleParams{
		Relay: relay, Owned: owned, Published: at[:1],
		DeadLetters: []storage.DeadLetterMove{{Position: at[1], Attempts: -1, Error: "nul \x00"}},
	})
	if err == nil {
		t.Skip("the store takes any text")
	}
	w.equal("pending", positions(w.all()), at)
}

// testSettleAnother settles events of which another one has the seq, as after a backup was
// restored.
func testSettleAnother(_ *testing.T, w *world) {
	w.enqueue(outboxtest.Event{Entity: "a"}, outboxtest.Event{Entity: "b"},
		outboxtest.Event{Entity: "c"})
	all := w.all()
	relay, owned := w.join(time.Minute)
	others := positions(all)
	for i := range others {
		others[i].Event = uuid.New()
	}
	w.equal("changed", w.settle(storage.SettleParams{
		Relay: relay, Owned: owned, Published: others[2:],
		Retries:     []storage.Retry{{Position: others[0], Attempts: 9}},
		DeadLetters: []storage.DeadLetterMove{{Position: others[1], Attempts: 9}},
	}), 0)
	// One has the id of the event, the other none, which settles any event.
	others[0], others[1].Event = all[0].Position, uuid.Nil
	w.equal("changed", w.settle(storage.SettleParams{
		Relay: relay, Owned: owned, Published: others[:1],
		DeadLetters: []storage.DeadLetterMove{{Position: others[1], Attempts: 9}},
	}), 2)
	w.equal("pending", fmt.Sprint(positions(w.all())), fmt.Sprint(positions(all[2:])))
}

func testRetry(_ *testing.T, w *world) {
	w.enqueue(outboxtest.Event{Entity: "a"}, outboxtest.Event{Entity: "b"}, outboxtest.Event{N: 3})
	all := w.all()
	relay, owned := w.join(time.Minute)
	w.equal("changed", w.settle(storage.SettleParams{
		Relay: relay, Owned: owned, Retries: []storage.Retry{
			{Position: all[0].Position, Attempts: 2, Delay: time.Hour, Error: "later"},
			{Position: all[1].Position, Attempts: 3, Interrupted: true, Error: "now"},
		},
	}), 2)
	for _, m := range w.all() {
		switch m.Position {
		case all[0].Position:
			w.equal("the one that waits",
				fmt.Sprint(m.Attempts, m.Interrupted, m.NotDue), fmt.Sprint(2, false, true))
		case all[1].Position:
			w.equal("the one that is due",
				fmt.Sprint(m.Attempts, m.Interrupted, m.NotDue), fmt.Sprint(3, true, false))
		default:
			w.equal("the other",
				fmt.Sprint(m.Attempts, m.Interrupted, m.NotDue), fmt.Sprint(0, false, false))
		}
	}
	due := w.due()
	w.equal("due", positions(due), positions(all[1:2]))
	w.equal("attempts", due[0].Attempts, 3)
}

func testDeadLetters(t *testing.T, w *world) {
	ids := w.enqueue(outboxtest.Event{Entity: "a", N: 1}, outboxtest.Event{Entity: "a", N: 2},
		outboxtest.Event{Entity: "a", N: 3})
	relay, owned := w.join(time.Minute)
	p := storage.SettleParams{Relay: relay, Owned: owned}
	for _, i := range w.all() {
		p.DeadLetters = append(p.DeadLetters,
			storage.DeadLetterMove{Position: i.Position, Attempts: 5, Error: "why"})
	}
	w.equal("moved", w.settle(p), 3)
	w.equal("pending", len(w.all()), 0)
	letters := w.deadLetters(2)
	w.equal("listed", len(letters), 2)
	w.equal("attempts and error",
		fmt.Sprintf("%d %s", letters[0].Attempts, letters[0].Error), "5 why")
	done, err := w.Store.DiscardDeadLetters(t.Context(),
		storage.DiscardDeadLettersParams{IDs: []storage.ID{ids[0], uuid.New()}})
	w.must(err)
	w.equal("discarded", done.Discarded, 1)
	w.equal("replayed", w.replay(ids[2], ids[1]), 2)
	again := w.all()
	w.equal("ids in their old order, without attempts",
		fmt.Sprint(again[0].ID, again[1].ID, again[0].Attempts), fmt.Sprint(ids[1], ids[2], 0))
	w.equal("dead letters left", len(w.deadLetters(10)), 0)
}

// testReplaysAreCounted makes an event a dead letter several times, beside others that the operator
// does not list.
func testReplaysAreCounted(t *testing.T, w *world) {
	id := w.enqueue(outboxtest.Event{Entity: "a", N: 1})[0]
	w.enqueue(outboxtest.Event{Entity: "b", N: 1}, outboxtest.Event{Entity: "b", N: 2})
	relay, owned := w.join(time.Minute)
	name := w.all()[0].Type
	for replays := range 3 {
		p := storage.SettleParams{Relay: relay, Owned: owned}
		for _, i := range w.all() {
			p.DeadLetters = append(p.DeadLetters,
				storage.DeadLetterMove{Position: i.Position, Attempts: 5, Error: "why"})
		}
		w.settle(p)
		list := func(typeName string) []storage.DeadLetter {
			found, err := w.Store.ListDeadLetters(t.Context(),
				storage.ListDeadLettersParams{Limit: 10, Type: typeName})
			w.must(err)
			return found.DeadLetters
		}
		w.equal("dead letters", len(list("")), 3)
		w.equal("of another type", len(list("other.happened")), 0)
		for _, letter := range list(name) {
			want := 0
			if letter.ID == id {
				want = replays
			}
			w.equal("replays", int(letter.Replays), want)
		}
		w.equal("of the type", len(list(name)), 3)
		w.equal("replayed", w.replay(id), 1)
	}
}
