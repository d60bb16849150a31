package conformance

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

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
