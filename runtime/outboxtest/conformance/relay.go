package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// relayTests check a store under the real relay.
var relayTests = map[string]func(*testing.T, *world){
	"order per key with 8 workers and 50 keys": testOrderPerKey,
	"two relays publish each event once": func(t *testing.T,
		w *world) {
		testManyRelays(t, w, 2)
	},
	"four relays publish each event once": func(t *testing.T,
		w *world) {
		testManyRelays(t, w, 4)
	},
	"late commits are published":                                 testLateCommit,
	"a late commit precedes its successors":                      testLateOrder,
	"commits in any order under load lose nothing":               testCommitStorm,
	"a rolled back enqueue leaves nothing":                       testRolledBack,
	"a failed event holds its key and no other":                  testHeldKey,
	"a key continues after a dead letter, which can be replayed": testDeadLetterPath,
	"an outage costs no attempts":                                testOutage,
	"a hanging publish ends, and costs an attempt":               testHang,
	"a panicking publisher costs an attempt":                     testPanic,
	"a lost acknowledgement publishes again":                     testLostAcknowledgement,
	"a vanished relay is succeeded after its lease":              testVanished,
	"a relay that lost its shards settles nothing":               testStalled,
	"an event that ends its relay becomes a dead letter":         testPoison,
	"shards are shared out, and handed over when one ends":       testHandOver,
	"draining finishes what is under way":                        testDrain,
	"many held keys are resumed":                                 testManyHeld,
}

// config returns a relay's configuration for tests: retries and polls are fast, and leases are so
// long that none ends on a busy machine.
func config() outbox.Config {
	return outbox.Config{
		Lease: 2 * hangTimeout, PublishTimeout: hangTimeout, PollInterval: 50 * time.Millisecond,
		MinRetryDelay: 5 * time.Millisecond, MaxRetryDelay: 50 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
}

// run runs a relay until the returned function is called, which stops it and waits for its end.
func (w *world) run(
	store storage.Store, p outbox.Publisher, c outbox.Config,
) (*outbox.Relay, func()) {
	w.Helper()
	if w.inBatches {
		p = outboxtest.InBatches(p)
	}
	relay, err := outbox.NewRelay(store, p, c)
	w.must(err)
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() { done <- relay.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, errSevered) {
			// A severed one cannot give its shards back.
			w.Errorf("Run: %v", err)
		}
	})
	w.Cleanup(stop)
	return relay, stop
}

func (w *world) wait(p *outboxtest.RecordingPublisher, n int) []outbox.Message {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), hangTimeout)
	defer cancel()
	messages, err := p.Wait(ctx, n)
	if err != nil {
		w.Fatalf("%d of %d events were published: %v", len(messages), n, err)
	}
	return messages
}

func number(m *outbox.Message) int64 {
	var e outboxtest.Event
	if err := json.Unmarshal(m.Payload, &e); err != nil {
		panic(err)
	}
	return e.N
}

// ordered fails unless each key's events have been published with ascending numbers; those
// published before may be repeated.
func (w *world) ordered(messages []outbox.Message) {
	w.Helper()
	last, seen := map[string]int64{}, map[outbox.ID]bool{}
	for i := range messages {
		m := &messages[i]
		if n := number(m); m.Key != "" && !seen[m.ID] {
			if n < last[m.Key] {
				w.Fatalf("key %s: %d was published after %d", m.Key, n, last[m.Key])
			}
			last[m.Key] = n
		}
		seen[m.ID] = true
	}
}

// once fails unless messages has n events, each of them once.
func (w *world) once(messages []outbox.Message, n int) {
	w.Helper()
	seen := map[outbox.ID]int{}
	for i := range messages {
		seen[messages[i].ID]++
		if seen[messages[i].ID] > 1 {
			w.Fatalf("event %s was published twice", messages[i].ID)
		}
	}
	w.equal("events published", len(seen), n)
}

func testOrderPerKey(_ *testing.T, w *world) {
	const keys, each = 50, 20
	for n := range each {
		var events []outbox.Event
		for k := range keys {
			events = append(events,
				outboxtest.Event{Entity: fmt.Sprint("key ", k), N: int64(n + 1)})
		}
		w.enqueue(events...)
	}
	recording := &outboxtest.RecordingPublisher{}
	flaky := &outboxtest.FaultyPublisher{Next: recording,
		Decide: func(*outbox.Message) outboxtest.Fault {
			if rand.IntN(10) == 0 {
				return outboxtest.Refuse
			}
			return outboxtest.Deliver
		}}
	c := config()
	c.Concurrency, c.MaxAttempts = 8, 1000
	_, stop := w.run(w.Store, flaky, c)
	w.wait(recording, keys*each)
	stop()
	messages := recording.Messages()
	w.ordered(messages)
	w.once(messages, keys*each)
	w.equal("pending", len(w.all()), 0)
}

// testManyRelays replaces one relay after the other while events are enqueued, as a deployment
// does. The shards change hands since relays leave, and not since leases end, so that each event is
// published once.
func testManyRelays(_ *testing.T, w *world, relays int) {
	const events = 10_000
	recording := &outboxtest.RecordingPublisher{}
	var stops []func()
	start := func(shards int) {
		relay, stop := w.run(w.Store, recording, config())
		stops = append(stops, stop)
		w.eventually(fmt.Sprintf("a relay has %d shards", shards),
			func() bool { return relay.Stats().Shards == shards })
	}
	start(Shards)
	for range relays - 1 {
		start(0) // until another one leaves
	}
	var producers sync.WaitGroup
	for p := range 4 {
		producers.Go(func() {
			for n := 0; n < events/4; n += 50 {
				var batch []outbox.Event
				for i := range 50 {
					batch = append(batch,
						outboxtest.Event{Entity: fmt.Sprintf("key %d of %d", (n+i)%37, p),
							N: int64(n + i + 1)})
				}
				w.enqueue(batch...)
			}
		})
	}
	for n := range relays {
		w.wait(recording, (n+1)*events/(2*relays))
		stops[n]()
		start(Shards / relays)
	}
	producers.Wait()
	w.wait(recording, events)
	w.eventually("everything is settled", func() bool { return len(w.all()) == 0 })
	for _, stop := range stops {
		stop()
	}
	messages := recording.Messages()
	w.once(messages, events)
	w.ordered(messages)
}

func testLateCommit(_ *testing.T, w *world) {
	recording := &outboxtest.RecordingPublisher{}
	w.run(w.Store, recording, config())
	slow := w.begin()
	_, err := slow.Enqueue(w.Context(),
		[]outbox.Event{outboxtest.Event{Entity: "late", N: 1}, outboxtest.Event{N: 2}})
	w.must(err)
	for i := range 200 { // for longer than the watermark waits for open transactions
		w.enqueue(outboxtest.Event{Entity: fmt.Sprint("early ", i%7), N: int64(i)},
			outboxtest.Event{N: int64(i)})
		w.wait(recording, 2*i+2)
		sleepABit(w.Context(), 5*time.Millisecond)
	}
	w.must(slow.Commit(w.Context()))
	messages := w.wait(recording, 402)
	w.once(messages, 402)
	w.eventually("everything is settled", func() bool { return len(w.all()) == 0 })
}

// sleepABit lets real time pass, for tests that are about time.
func sleepABit(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// testLateOrder: a long transaction takes the aggregate's lock and enqueues; another waits for the
// lock, enqueues behind it and commits right after it. Whoever sees the second must have seen the
// first.
func testLateOrder(_ *testing.T, w *world) {
	recording := &outboxtest.RecordingPublisher{}
	w.run(w.Store, recording, config())
	published := 0
	for round := range 12 {
		key := fmt.Sprint("contended ", round)
		long := w.begin()
		_, err := long.Enqueue(w.Context(), []outbox.Event{outboxtest.Event{Entity: key, N: 1}})
		w.must(err)
		until := time.Now().Add(time.Duration(round*100) * time.Millisecond)
		for time.Now().Before(until) {
			w.enqueue(outboxtest.Event{Entity: "other", N: time.Now().UnixNano()})
			published++
			sleepABit(w.Context(), time.Millisecond)
		}
		w.must(long.Commit(w.Context()))
		w.enqueue(outboxtest.Event{Entity: key, N: 2})
		published += 2
	}
	messages := w.wait(recording, published)
	w.ordered(messages)
	w.once(messages, published)
}

// testCommitStorm commits transactions in another order than they enqueue in, some never, while
// relays come and go.
func testCommitStorm(_ *testing.T, w *world) {
	recording := &outboxtest.RecordingPublisher{}
	w.run(w.Store, recording, config())
	var committed atomic.Int64
	var producers sync.WaitGroup
	for p := range 6 {
		producers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(p), 1))
			var open []Tx
			end := func(i int) {
				tx := open[i]
				open = append(open[:i], open[i+1:]...)
				if random.IntN(5) == 0 {
					w.must(tx.Rollback(w.Context()))
					return
				}
				w.must(tx.Commit(w.Context()))
				committed.Add(1)
			}
			for n := range 150 {
				tx := w.begin()
				_, err := tx.Enqueue(w.Context(),
					[]outbox.Event{outboxtest.Event{Entity: fmt.Sprintf("%d/%d", p, n), N: 1}})
				w.must(err)
				if open = append(open, tx); len(open) > 4 {
					end(random.IntN(len(open)))
				}
			}
			for len(open) > 0 {
				end(len(open) - 1)
			}
		})
	}
	producers.Wait()
	w.wait(recording, int(committed.Load()))
	w.eventually("everything is settled", func() bool { return len(w.all()) == 0 })
	w.once(recording.Messages(), int(committed.Load()))
}

func testRolledBack(_ *testing.T, w *world) {
	recording := &outboxtest.RecordingPublisher{}
	w.run(w.Store, recording, config())
	tx := w.begin()
	_, err := tx.Enqueue(w.Context(), []outbox.Event{outboxtest.Event{Entity: "never", N: 1}})
	w.must(err)
	w.must(tx.Rollback(w.Context()))
	w.enqueue(outboxtest.Event{Entity: "always", N: 1})
	messages := w.wait(recording, 1)
	w.equal("published", messages[0].Key, "always")
	w.equal("pending", countKey(w.all(), "never"), 0)
}

func countKey(items []storage.Item, key string) int {
	n := 0
	for i := range items {
		if items[i].Key == key {
			n++
		}
	}
	return n
}
