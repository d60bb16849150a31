package outboxtest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// Tx is a business transaction of the store under test.
type Tx interface {
	Enqueue(ctx context.Context, events []outbox.Event, opts ...outbox.EnqueueOption) ([]outbox.ID, error)
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}

// Harness is a store under test, on an outbox of its own that is empty and has 16 shards.
type Harness struct {
	Store outbox.Store
	Begin func(ctx context.Context) (Tx, error)
}

// Shards is the number of shards that TestStore asks of a Harness.
const Shards = 16

// Event is the event that the suites enqueue.
type Event struct {
	Entity string `json:"entity"`
	N      int64  `json:"n"`
}

// EventType implements outbox.Event.
func (e Event) EventType() outbox.EventType {
	t := outbox.EventType{Name: "thing.happened", Version: 1, Topic: "things"}
	if e.Entity != "" {
		t.Ordering = outbox.OrderingKey
	}
	return t
}

// EventKey implements outbox.Event: events of one entity are ordered, those without one are not.
func (e Event) EventKey() string { return e.Entity }

// TestStore checks that a store keeps what outbox.Store promises, alone and under relays. Open is called for every test
// and may register clean-ups with t.
func TestStore(t *testing.T, open func(t *testing.T) Harness) {
	for _, tests := range []map[string]func(*testing.T, *world){storeTests, relayTests} {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, &world{T: t, Harness: open(t)})
			})
		}
	}
}

// world is one test's store, and shorthands that fail the test.
type world struct {
	*testing.T
	Harness
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
func (w *world) join(lease time.Duration) (outbox.ID, []outbox.Ownership) {
	w.Helper()
	relay := uuid.New()
	w.must(w.Store.Join(w.Context(), relay, lease))
	owned, err := w.Store.Take(w.Context(), relay, Shards, nil)
	w.must(err)
	return relay, owned
}

// all reads everything, as a relay that knows nothing.
func (w *world) all() []outbox.Message {
	w.Helper()
	return w.read(nil, 1<<30)
}

func (w *world) read(known []int64, maxBytes int) []outbox.Message {
	w.Helper()
	var reads []outbox.ShardRead
	for i := range Shards {
		reads = append(reads, outbox.ShardRead{Shard: int32(i), Limit: 100_000})
	}
	messages, err := w.Store.Read(w.Context(), reads, known, maxBytes)
	w.must(err)
	return messages
}

func (w *world) due() []outbox.Message {
	w.Helper()
	var reads []outbox.ShardRead
	for i := range Shards {
		reads = append(reads, outbox.ShardRead{Shard: int32(i), After: 1 << 60, Limit: 100})
	}
	messages, err := w.Store.ReadDue(w.Context(), reads, nil)
	w.must(err)
	return messages
}

func (w *world) equal(what string, got, want any) {
	w.Helper()
	if g, x := fmt.Sprint(got), fmt.Sprint(want); g != x {
		w.Fatalf("%s: got %s, want %s", what, g, x)
	}
}

// expire ends a relay's lease at once, as if the relay had been silent for all of it. What the
// database holds is changed, and not what the relay knows, so that no test has to be faster than a
// lease.
func (w *world) expire(relay outbox.ID) {
	w.Helper()
	_, err := w.Store.Renew(w.Context(), relay, time.Microsecond)
	w.must(err)
}

// eventually waits until condition holds.
func (w *world) eventually(what string, condition func() bool) {
	w.Helper()
	deadline, tick := time.After(patience), time.NewTicker(2*time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			w.Fatalf("not within %v: %s", patience, what)
		case <-tick.C:
		}
	}
}

func positions(messages []outbox.Message) []outbox.Position {
	out := make([]outbox.Position, len(messages))
	for i := range messages {
		out[i] = messages[i].Position
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
	"a mark covers what is not committed":                        testMark,
	"shards have one owner":                                      testMembership,
	"an expired relay loses its shards and knows it":             testExpiry,
	"shards that a relay does not know of are its to take again": testTakeAgain,
	"a settle without ownership changes nothing":                 testFence,
	"a settle of another event changes nothing":                  testSettleAnother,
	"a retry waits until it is due":                              testRetry,
	"dead letters are kept, replayed and discarded":              testDeadLetters,
}

func testAtomic(_ *testing.T, w *world) {
	tx := w.begin()
	_, err := tx.Enqueue(w.Context(), []outbox.Event{Event{Entity: "a"}})
	w.must(err)
	w.equal("before the commit", len(w.all()), 0)
	w.must(tx.Rollback(w.Context()))
	w.equal("after a rollback", len(w.all()), 0)
	w.enqueue(Event{Entity: "a"})
	w.equal("after a commit", len(w.all()), 1)
}

func testAttributes(t *testing.T, w *world) {
	id, cause := uuid.New(), uuid.New()
	ctx := outbox.ContextWithTraceparent(t.Context(), "00-11111111111111111111111111111111-2222222222222222-01")
	tx := w.begin()
	_, err := tx.Enqueue(ctx, []outbox.Event{Event{Entity: "Zoë ☃", N: 7}},
		outbox.WithID(id), outbox.WithCausation(cause), outbox.WithHeader("tenant", "größe"))
	w.must(err)
	_, err = tx.Enqueue(t.Context(), []outbox.Event{Event{N: 8}})
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
		"tenant": "größe", "traceparent": "00-11111111111111111111111111111111-2222222222222222-01",
	})
	w.equal("causation", m.CausationID, cause)
	w.equal("attempts", m.Attempts, 0)
	if m.Source == "" || m.CreatedAt.IsZero() {
		t.Fatalf("source %q, created at %v: want both set", m.Source, m.CreatedAt)
	}
	plain := messages[1]
	w.equal("key, headers and causation of a plain event",
		fmt.Sprint(plain.Key == "", plain.Headers == nil, plain.CausationID), fmt.Sprint(true, true, uuid.Nil))
}

func testRefusedEvent(t *testing.T, w *world) {
	tx := w.begin()
	for _, key := range []string{"nul \x00", "broken \xff", strings.Repeat("x", outbox.MaxKeyBytes+1)} {
		if _, err := tx.Enqueue(t.Context(), []outbox.Event{Event{Entity: key}}); err == nil {
			t.Fatalf("key %q was accepted", key)
		}
	}
	if _, err := tx.Enqueue(t.Context(), []outbox.Event{Event{}}, outbox.WithHeader("x", "a\x00b")); err == nil {
		t.Fatal("a header with a NUL was accepted")
	}
	_, err := tx.Enqueue(t.Context(), []outbox.Event{Event{Entity: "fine"}})
	w.must(err)
	w.must(tx.Commit(t.Context()))
	w.equal("events", len(w.all()), 1)
}

func testReadBounds(t *testing.T, w *world) {
	var events []outbox.Event
	for i := range 20 {
		events = append(events, Event{Entity: "same shard", N: int64(i)})
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
	some, err := w.Store.Read(t.Context(), []outbox.ShardRead{{Shard: all[0].Shard, After: all[4].Seq, Limit: 3}}, []int64{all[6].Seq}, 1<<30)
	w.must(err)
	w.equal("after the fifth, without the seventh", positions(some), []outbox.Position{all[5].Position, all[7].Position, all[8].Position})
}

func testReadKeys(t *testing.T, w *world) {
	var events []outbox.Event
	for i := range 30 {
		events = append(events, Event{Entity: fmt.Sprint("key ", i%3), N: int64(i)})
	}
	w.enqueue(events...)
	var reads []outbox.KeyRead
	want := map[string][]outbox.Position{}
	for _, m := range w.all() {
		want[m.Key] = append(want[m.Key], m.Position)
	}
	for _, key := range []string{"key 2", "key 0"} {
		all := want[key]
		reads = append(reads, outbox.KeyRead{Shard: all[0].Shard, Key: key, From: all[1].Seq, To: all[8].Seq, Limit: 5})
	}
	got, err := w.Store.ReadKeys(t.Context(), reads)
	w.must(err)
	w.equal("events", positions(got), append(want["key 2"][1:6:6], want["key 0"][1:6]...))
}

func testMark(t *testing.T, w *world) {
	tx := w.begin()
	_, err := tx.Enqueue(t.Context(), []outbox.Event{Event{Entity: "late"}})
	w.must(err)
	mark, err := w.Store.Mark(t.Context())
	w.must(err)
	snapshot, err := w.Store.Snapshot(t.Context())
	w.must(err)
	running := false
	for _, xid := range snapshot.InProgress {
		running = running || xid < mark.Xid
	}
	if !running {
		t.Fatalf("snapshot %+v shows no transaction below %+v as running", snapshot, mark)
	}
	w.must(tx.Commit(t.Context()))
	if late := w.all()[0]; late.Seq > mark.Seq {
		t.Fatalf("the mark is at %d, the event that was enqueued before has %d", mark.Seq, late.Seq)
	}
	w.eventually("the mark's transactions have ended", func() bool {
		snapshot, err = w.Store.Snapshot(t.Context())
		w.must(err)
		return snapshot.Xmin >= mark.Xid
	})
}

func testMembership(t *testing.T, w *world) {
	first, owned := w.join(time.Minute)
	w.equal("shards of the first", len(owned), Shards)
	second, none := w.join(time.Minute)
	w.equal("shards of the second", len(none), 0)
	census, err := w.Store.Renew(t.Context(), second, time.Minute)
	w.must(err)
	w.equal("census", census, outbox.Census{Relays: 2, Shards: Shards})
	w.must(w.Store.Release(t.Context(), first, owned[:3]))
	taken, err := w.Store.Take(t.Context(), second, 2, nil)
	w.must(err)
	w.equal("taken", len(taken), 2)
	for _, o := range taken {
		if o.Fence != 2 || o.Suspect {
			t.Fatalf("got %+v, want fence 2 and no suspicion", o)
		}
	}
	w.must(w.Store.Release(t.Context(), first, taken)) // not the first's
	w.must(w.Store.Leave(t.Context(), first))
	rest, err := w.Store.Take(t.Context(), second, Shards, taken)
	w.must(err)
	w.equal("the rest", len(rest), Shards-2)
}

func testExpiry(t *testing.T, w *world) {
	gone, owned := w.join(time.Hour)
	w.equal("shards", len(owned), Shards)
	w.expire(gone)
	heir := uuid.New()
	w.must(w.Store.Join(t.Context(), heir, time.Minute))
	var taken []outbox.Ownership
	w.eventually("the lease ends", func() bool {
		var err error
		taken, err = w.Store.Take(t.Context(), heir, Shards, nil)
		w.must(err)
		return len(taken) > 0
	})
	w.equal("taken", len(taken), Shards)
	for _, o := range taken {
		if o.Fence != 2 || !o.Suspect {
			t.Fatalf("got %+v, want fence 2 and suspicion", o)
		}
	}
	if _, err := w.Store.Renew(t.Context(), gone, time.Minute); err != outbox.ErrLeaseLost {
		t.Fatalf("renewing an expired lease: got %v, want ErrLeaseLost", err)
	}
}

func testTakeAgain(t *testing.T, w *world) {
	relay, owned := w.join(time.Minute)
	again, err := w.Store.Take(t.Context(), relay, Shards, owned[2:])
	w.must(err)
	w.equal("shards", len(again), 2)
	if again[0].Suspect || again[0].Fence != 2 {
		t.Fatalf("got %+v, want fence 2 and no suspicion", again[0])
	}
}

func testFence(t *testing.T, w *world) {
	w.enqueue(Event{Entity: "a"}, Event{Entity: "b"}, Event{Entity: "c"})
	at := positions(w.all())
	relay, owned := w.join(time.Minute)
	stale := make([]outbox.Ownership, len(owned))
	for i, o := range owned {
		o.Fence--
		stale[i] = o
	}
	for _, who := range []struct {
		relay outbox.ID
		owned []outbox.Ownership
	}{{relay, stale}, {uuid.New(), owned}, {relay, nil}} {
		n, err := w.Store.Published(t.Context(), who.relay, who.owned, at)
		w.must(err)
		r, err := w.Store.Retry(t.Context(), who.relay, who.owned, []outbox.Retry{{Position: at[0], Attempts: 9}})
		w.must(err)
		d, err := w.Store.Bury(t.Context(), who.relay, who.owned, []outbox.Death{{Position: at[1], Attempts: 9}})
		w.must(err)
		w.equal("changed", n+r+d, 0)
	}
	for _, m := range w.all() {
		w.equal("attempts", m.Attempts, 0)
	}
	n, err := w.Store.Published(t.Context(), relay, owned, at)
	w.must(err)
	w.equal("changed by the owner", n, 3)
	w.equal("pending", len(w.all()), 0)
}

// testSettleAnother settles events of which another one has the seq, as after a backup was
// restored.
func testSettleAnother(t *testing.T, w *world) {
	w.enqueue(Event{Entity: "a"}, Event{Entity: "b"}, Event{Entity: "c"})
	all := w.all()
	relay, owned := w.join(time.Minute)
	others := positions(all)
	for i := range others {
		others[i].Event = uuid.New()
	}
	n, err := w.Store.Published(t.Context(), relay, owned, others)
	w.must(err)
	r, err := w.Store.Retry(t.Context(), relay, owned,
		[]outbox.Retry{{Position: others[0], Attempts: 9}})
	w.must(err)
	d, err := w.Store.Bury(t.Context(), relay, owned,
		[]outbox.Death{{Position: others[1], Attempts: 9}})
	w.must(err)
	w.equal("changed", n+r+d, 0)
	// One is as it was read, the other whichever event stands there.
	others[0], others[1].Event = all[0].Position, uuid.Nil
	n, err = w.Store.Published(t.Context(), relay, owned, others[:1])
	w.must(err)
	d, err = w.Store.Bury(t.Context(), relay,
		owned, []outbox.Death{{Position: others[1], Attempts: 9}})
	w.must(err)
	w.equal("changed", n+d, 2)
	w.equal("pending", fmt.Sprint(positions(w.all())), fmt.Sprint(positions(all[2:])))
}

func testRetry(t *testing.T, w *world) {
	w.enqueue(Event{Entity: "a"}, Event{Entity: "b"}, Event{N: 3})
	all := w.all()
	relay, owned := w.join(time.Minute)
	n, err := w.Store.Retry(t.Context(), relay, owned, []outbox.Retry{
		{Position: all[0].Position, Attempts: 2, Delay: time.Hour, Error: "later"},
		{Position: all[1].Position, Attempts: 3, Begun: true, Error: "now"},
	})
	w.must(err)
	w.equal("changed", n, 2)
	for _, m := range w.all() {
		switch m.Position {
		case all[0].Position:
			w.equal("the one that waits", fmt.Sprint(m.Attempts, m.Begun, m.Waiting), fmt.Sprint(2, false, true))
		case all[1].Position:
			w.equal("the one that is due", fmt.Sprint(m.Attempts, m.Begun, m.Waiting), fmt.Sprint(3, true, false))
		default:
			w.equal("the other", fmt.Sprint(m.Attempts, m.Begun, m.Waiting), fmt.Sprint(0, false, false))
		}
	}
	due := w.due()
	w.equal("due", positions(due), positions(all[1:2]))
	w.equal("attempts", due[0].Attempts, 3)
}

func testDeadLetters(t *testing.T, w *world) {
	ids := w.enqueue(Event{Entity: "a", N: 1}, Event{Entity: "a", N: 2}, Event{Entity: "a", N: 3})
	relay, owned := w.join(time.Minute)
	var deaths []outbox.Death
	for _, m := range w.all() {
		deaths = append(deaths, outbox.Death{Position: m.Position, Attempts: 5, Error: "why"})
	}
	n, err := w.Store.Bury(t.Context(), relay, owned, deaths)
	w.must(err)
	w.equal("buried", n, 3)
	w.equal("pending", len(w.all()), 0)
	letters, err := w.Store.ListDead(t.Context(), 2)
	w.must(err)
	w.equal("listed", len(letters), 2)
	w.equal("attempts and error", fmt.Sprintf("%d %s", letters[0].Attempts, letters[0].Error), "5 why")
	n, err = w.Store.Discard(t.Context(), ids[0], uuid.New())
	w.must(err)
	w.equal("discarded", n, 1)
	n, err = w.Store.Replay(t.Context(), ids[2], ids[1])
	w.must(err)
	w.equal("replayed", n, 2)
	again := w.all()
	w.equal("ids in their old order, without attempts",
		fmt.Sprint(again[0].ID, again[1].ID, again[0].Attempts), fmt.Sprint(ids[1], ids[2], 0))
	letters, err = w.Store.ListDead(t.Context(), 10)
	w.must(err)
	w.equal("dead letters left", len(letters), 0)
}
