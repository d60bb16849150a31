package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

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
