package conformance

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

func testHeldKey(_ *testing.T, w *world) {
	var broken atomic.Bool
	broken.Store(true)
	recording := &outboxtest.RecordingPublisher{}
	faulty := &outboxtest.FaultyPublisher{Next: recording,
		Decide: func(m *outbox.Message) outboxtest.Fault {
			if m.Key == "held" && broken.Load() {
				return outboxtest.Refuse
			}
			return outboxtest.Deliver
		}}
	c := config()
	c.MaxAttempts = 1 << 20
	relay, _ := w.run(w.Store, faulty, c)
	const n = 1500 // more than is read of a key at once
	for i := 0; i < n; i += 100 {
		var batch []outbox.Event
		for j := range 100 {
			batch = append(batch, outboxtest.Event{Entity: "held", N: int64(i + j + 1)},
				outboxtest.Event{Entity: "free", N: int64(i + j + 1)})
		}
		w.enqueue(batch...)
	}
	for _, m := range w.wait(recording, n) {
		w.equal("key of what is published", m.Key, "free")
	}
	w.eventually("the key is held", func() bool { return relay.Stats().Held == 1 })
	broken.Store(false)
	messages := w.wait(recording, 2*n)
	w.ordered(messages)
	w.once(messages, 2*n)
}

func testDeadLetterPath(_ *testing.T, w *world) {
	var broken atomic.Bool
	broken.Store(true)
	recording := &outboxtest.RecordingPublisher{}
	faulty := &outboxtest.FaultyPublisher{Next: recording,
		Decide: func(m *outbox.Message) outboxtest.Fault {
			switch {
			case broken.Load() && number(m) == 1:
				return outboxtest.Refuse
			case broken.Load() && number(m) == 3:
				return outboxtest.RefuseForGood
			}
			return outboxtest.Deliver
		}}
	c := config()
	c.MaxAttempts = 3
	relay, _ := w.run(w.Store, faulty, c)
	ids := w.enqueue(outboxtest.Event{Entity: "a", N: 1}, outboxtest.Event{Entity: "a", N: 2},
		outboxtest.Event{Entity: "a", N: 3}, outboxtest.Event{Entity: "a", N: 4})
	messages := w.wait(recording, 2)
	w.equal("published", fmt.Sprint(number(&messages[0]), number(&messages[1])), "2 4")
	w.eventually("two are dead", func() bool { return relay.Stats().Dead == 2 })
	letters := w.deadLetters(10)
	attempts := map[outbox.ID]int32{letters[0].ID: letters[0].Attempts,
		letters[1].ID: letters[1].Attempts}
	w.equal("attempts", attempts, map[outbox.ID]int32{ids[0]: 3, ids[2]: 1})
	broken.Store(false)
	w.equal("replayed", w.replay(ids[0], ids[2]), 2)
	messages = w.wait(recording, 4)
	w.equal("ids of the replayed", fmt.Sprint(messages[2].ID, messages[3].ID),
		fmt.Sprint(ids[0], ids[2]))
}

func testOutage(_ *testing.T, w *world) {
	var down atomic.Bool
	var tries atomic.Int64
	recording := &outboxtest.RecordingPublisher{}
	faulty := &outboxtest.FaultyPublisher{Next: recording,
		Decide: func(*outbox.Message) outboxtest.Fault {
			if down.Load() {
				tries.Add(1)
				return outboxtest.Unreachable
			}
			return outboxtest.Deliver
		}}
	c := config()
	c.MaxAttempts = 2
	down.Store(true)
	relay, _ := w.run(w.Store, faulty, c)
	var events []outbox.Event
	for i := range 500 {
		events = append(events, outboxtest.Event{Entity: fmt.Sprint(i % 20), N: int64(i + 1)})
	}
	w.enqueue(events...)
	w.eventually("the breaker opens", func() bool { return relay.Stats().Open })
	before := tries.Load()
	w.eventually("the broker is tried again, a little",
		func() bool { return tries.Load() >= before+3 })
	for _, m := range w.all() {
		w.equal("attempts", m.Attempts, 0)
	}
	w.equal("tries during the outage are few", tries.Load() < 200, true)
	down.Store(false)
	messages := w.wait(recording, 500)
	w.ordered(messages)
	w.once(messages, 500)
	w.equal("dead letters", relay.Stats().Dead, 0)
}

func testHang(_ *testing.T, w *world) {
	recording := &outboxtest.RecordingPublisher{}
	faulty := &outboxtest.FaultyPublisher{Next: recording,
		Decide: func(m *outbox.Message) outboxtest.Fault {
			if m.Key == "hangs" {
				return outboxtest.Hang
			}
			return outboxtest.Deliver
		}}
	c := config()
	c.PublishTimeout, c.MaxAttempts = 50*time.Millisecond, 2
	relay, _ := w.run(w.Store, faulty, c)
	w.enqueue(outboxtest.Event{Entity: "hangs", N: 1})
	n := 0
	w.eventually("it is a dead letter, since others get through", func() bool {
		n++
		w.enqueue(outboxtest.Event{Entity: "passes", N: int64(n)})
		return relay.Stats().Dead == 1
	})
	w.ordered(w.wait(recording, n))
}

func testPanic(_ *testing.T, w *world) {
	recording := &outboxtest.RecordingPublisher{}
	var tried atomic.Bool
	faulty := &outboxtest.FaultyPublisher{Next: recording,
		Decide: func(m *outbox.Message) outboxtest.Fault {
			if number(m) == 1 && !tried.Swap(true) {
				return outboxtest.Panic
			}
			return outboxtest.Deliver
		}}
	relay, _ := w.run(w.Store, faulty, config())
	w.enqueue(outboxtest.Event{Entity: "panics", N: 1}, outboxtest.Event{Entity: "panics", N: 2})
	w.ordered(w.wait(recording, 2))
	w.equal("retried", relay.Stats().Retried, 1)
}

func testLostAcknowledgement(_ *testing.T, w *world) {
	var lost atomic.Int64
	recording := &outboxtest.RecordingPublisher{}
	faulty := &outboxtest.FaultyPublisher{Next: recording,
		Decide: func(*outbox.Message) outboxtest.Fault {
			if lost.Add(1) == 1 {
				return outboxtest.LoseAcknowledgement
			}
			return outboxtest.Deliver
		}}
	w.run(w.Store, faulty, config())
	ids := w.enqueue(outboxtest.Event{Entity: "a", N: 1})
	messages := w.wait(recording, 2)
	w.equal("ids", fmt.Sprint(messages[0].ID, messages[1].ID), fmt.Sprint(ids[0], ids[0]))
	w.eventually("it is settled", func() bool { return len(w.all()) == 0 })
}

// testManyHeld holds more keys than are resumed at once, and lets all go.
func testManyHeld(_ *testing.T, w *world) {
	var broken atomic.Bool
	broken.Store(true)
	recording := &outboxtest.RecordingPublisher{}
	faulty := &outboxtest.FaultyPublisher{Next: recording,
		Decide: func(m *outbox.Message) outboxtest.Fault {
			if broken.Load() {
				return outboxtest.Refuse
			}
			return outboxtest.Deliver
		}}
	c := config()
	c.MaxAttempts = 1 << 20
	relay, _ := w.run(w.Store, faulty, c)
	for n := range 3 {
		var events []outbox.Event
		for k := range 300 {
			events = append(events,
				outboxtest.Event{Entity: fmt.Sprint("key ", k), N: int64(n + 1)})
		}
		w.enqueue(events...)
	}
	w.eventually("all keys are held", func() bool { return relay.Stats().Held == 300 })
	broken.Store(false)
	messages := w.wait(recording, 900)
	w.ordered(messages)
	w.once(messages, 900)
}
