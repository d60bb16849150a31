package outboxtest

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

	"github.com/google/uuid"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// relayTests check a store under the real relay.
var relayTests = map[string]func(*testing.T, *world){
	"order per key with 8 workers and 50 keys":              testOrderPerKey,
	"two relays publish each event once":                    func(t *testing.T, w *world) { testManyRelays(t, w, 2) },
	"four relays publish each event once":                   func(t *testing.T, w *world) { testManyRelays(t, w, 4) },
	"late commits are published":                            testLateCommit,
	"a late commit precedes its successors":                 testLateOrder,
	"commits in any order under load lose nothing":          testCommitStorm,
	"a rolled back enqueue leaves nothing":                  testRolledBack,
	"a failed event holds its key and no other":             testHeldKey,
	"a dead letter lets its key go on, and can be replayed": testDeadLetterPath,
	"an outage costs no attempts":                           testOutage,
	"a hanging publish ends, and costs an attempt":          testHang,
	"a panicking publisher costs an attempt":                testPanic,
	"a lost acknowledgement publishes again":                testLostAcknowledgement,
	"a vanished relay is succeeded after its lease":         testVanished,
	"a relay that lost its shards settles nothing":          testStalled,
	"an event that ends its relay becomes a dead letter":    testPoison,
	"shards are shared out, and handed over when one ends":  testHandOver,
	"draining finishes what is under way":                   testDrain,
	"many held keys go on":                                  testManyHeld,
}

// config is a relay's for tests: everything happens soon.
func config() outbox.Config {
	return outbox.Config{
		Lease: 10 * time.Second, PublishTimeout: 5 * time.Second, PollInterval: 50 * time.Millisecond,
		BackoffMin: 5 * time.Millisecond, BackoffMax: 50 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
}

// run runs a relay until the returned function is called, which waits for its end.
func (w *world) run(store outbox.Store, p outbox.Publisher, c outbox.Config) (*outbox.Relay, func()) {
	w.Helper()
	relay, err := outbox.NewRelay(store, p, c)
	w.must(err)
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() { done <- relay.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.Errorf("Run: %v", err)
		}
	})
	w.Cleanup(stop)
	return relay, stop
}

func (w *world) wait(p *RecordingPublisher, n int) []outbox.Message {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), 60*time.Second)
	defer cancel()
	messages, err := p.Wait(ctx, n)
	if err != nil {
		w.Fatalf("%d of %d events were published: %v", len(messages), n, err)
	}
	return messages
}

func number(m *outbox.Message) int64 {
	var e Event
	if err := json.Unmarshal(m.Payload, &e); err != nil {
		panic(err)
	}
	return e.N
}

// ordered fails unless each key's events have been published with ascending numbers; those published before may be repeated.
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
			events = append(events, Event{Entity: fmt.Sprint("key ", k), N: int64(n + 1)})
		}
		w.enqueue(events...)
	}
	recording := &RecordingPublisher{}
	flaky := &FaultyPublisher{Next: recording, Decide: func(*outbox.Message) Fault {
		if rand.IntN(10) == 0 {
			return Refuse
		}
		return Deliver
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

func testManyRelays(_ *testing.T, w *world, relays int) {
	const events = 10_000
	recording := &RecordingPublisher{}
	var stops []func()
	for range relays {
		c := config()
		c.Lease, c.PublishTimeout = 3*time.Second, time.Second // so that shards change hands meanwhile
		_, stop := w.run(w.Store, recording, c)
		stops = append(stops, stop)
	}
	var producers sync.WaitGroup
	for p := range 4 {
		producers.Go(func() {
			for n := 0; n < events/4; n += 50 {
				var batch []outbox.Event
				for i := range 50 {
					batch = append(batch, Event{Entity: fmt.Sprintf("key %d of %d", (n+i)%37, p), N: int64(n + i + 1)})
				}
				w.enqueue(batch...)
			}
		})
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
	recording := &RecordingPublisher{}
	w.run(w.Store, recording, config())
	slow := w.begin()
	_, err := slow.Enqueue(w.Context(), []outbox.Event{Event{Entity: "late", N: 1}, Event{N: 2}})
	w.must(err)
	for i := range 200 { // for longer than the relay's patience with transactions that do not end
		w.enqueue(Event{Entity: fmt.Sprint("early ", i%7), N: int64(i)}, Event{N: int64(i)})
		w.wait(recording, 2*i+2)
		sleepABit(w.Context(), 5*time.Millisecond)
	}
	w.must(slow.Commit(w.Context()))
	messages := w.wait(recording, 402)
	w.once(messages, 402)
	w.eventually("everything is settled", func() bool { return len(w.all()) == 0 })
}

// sleepABit lets real time pass, where the test is about just that.
func sleepABit(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// testLateOrder: a long transaction takes the aggregate's lock and enqueues; another waits for the lock, enqueues behind it and
// commits right after it. Whoever sees the second must have seen the first.
func testLateOrder(_ *testing.T, w *world) {
	recording := &RecordingPublisher{}
	w.run(w.Store, recording, config())
	published := 0
	for round := range 12 {
		key := fmt.Sprint("contended ", round)
		long := w.begin()
		_, err := long.Enqueue(w.Context(), []outbox.Event{Event{Entity: key, N: 1}})
		w.must(err)
		for until := time.Now().Add(time.Duration(round*100) * time.Millisecond); time.Now().Before(until); {
			w.enqueue(Event{Entity: "other", N: time.Now().UnixNano()})
			published++
			sleepABit(w.Context(), time.Millisecond)
		}
		w.must(long.Commit(w.Context()))
		w.enqueue(Event{Entity: key, N: 2})
		published += 2
	}
	messages := w.wait(recording, published)
	w.ordered(messages)
	w.once(messages, published)
}

// testCommitStorm commits transactions in another order than they enqueue in, some never, while relays come and go.
func testCommitStorm(_ *testing.T, w *world) {
	recording := &RecordingPublisher{}
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
				_, err := tx.Enqueue(w.Context(), []outbox.Event{Event{Entity: fmt.Sprintf("%d/%d", p, n), N: 1}})
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
	recording := &RecordingPublisher{}
	w.run(w.Store, recording, config())
	tx := w.begin()
	_, err := tx.Enqueue(w.Context(), []outbox.Event{Event{Entity: "never", N: 1}})
	w.must(err)
	w.must(tx.Rollback(w.Context()))
	w.enqueue(Event{Entity: "always", N: 1})
	messages := w.wait(recording, 1)
	w.equal("published", messages[0].Key, "always")
	w.equal("pending", countKey(w.all(), "never"), 0)
}

func countKey(messages []outbox.Message, key string) int {
	n := 0
	for i := range messages {
		if messages[i].Key == key {
			n++
		}
	}
	return n
}

func testHeldKey(_ *testing.T, w *world) {
	var broken atomic.Bool
	broken.Store(true)
	recording := &RecordingPublisher{}
	faulty := &FaultyPublisher{Next: recording, Decide: func(m *outbox.Message) Fault {
		if m.Key == "held" && broken.Load() {
			return Refuse
		}
		return Deliver
	}}
	c := config()
	c.MaxAttempts = 1 << 20
	relay, _ := w.run(w.Store, faulty, c)
	const n = 1500 // more than is read of a key at once
	for i := 0; i < n; i += 100 {
		var batch []outbox.Event
		for j := range 100 {
			batch = append(batch, Event{Entity: "held", N: int64(i + j + 1)}, Event{Entity: "free", N: int64(i + j + 1)})
		}
		w.enqueue(batch...)
	}
	w.equal("published of the free key", countKey(w.wait(recording, n), "free"), n)
	w.eventually("the key is held", func() bool { return relay.Stats().Held == 1 })
	broken.Store(false)
	messages := w.wait(recording, 2*n)
	w.ordered(messages)
	w.once(messages, 2*n)
}

func testDeadLetterPath(_ *testing.T, w *world) {
	var broken atomic.Bool
	broken.Store(true)
	recording := &RecordingPublisher{}
	faulty := &FaultyPublisher{Next: recording, Decide: func(m *outbox.Message) Fault {
		switch {
		case broken.Load() && number(m) == 1:
			return Refuse
		case broken.Load() && number(m) == 3:
			return RefuseForGood
		}
		return Deliver
	}}
	c := config()
	c.MaxAttempts = 3
	relay, _ := w.run(w.Store, faulty, c)
	ids := w.enqueue(Event{Entity: "a", N: 1}, Event{Entity: "a", N: 2}, Event{Entity: "a", N: 3}, Event{Entity: "a", N: 4})
	messages := w.wait(recording, 2)
	w.equal("published", fmt.Sprint(number(&messages[0]), number(&messages[1])), "2 4")
	w.eventually("two are dead", func() bool { return relay.Stats().Dead == 2 })
	letters, err := w.Store.ListDead(w.Context(), 10)
	w.must(err)
	attempts := map[outbox.ID]int32{letters[0].ID: letters[0].Attempts, letters[1].ID: letters[1].Attempts}
	w.equal("attempts", attempts, map[outbox.ID]int32{ids[0]: 3, ids[2]: 1})
	broken.Store(false)
	n, err := w.Store.Replay(w.Context(), ids[0], ids[2])
	w.must(err)
	w.equal("replayed", n, 2)
	messages = w.wait(recording, 4)
	w.equal("ids of the replayed", fmt.Sprint(messages[2].ID, messages[3].ID), fmt.Sprint(ids[0], ids[2]))
}

func testOutage(_ *testing.T, w *world) {
	var down atomic.Bool
	var tries atomic.Int64
	recording := &RecordingPublisher{}
	faulty := &FaultyPublisher{Next: recording, Decide: func(*outbox.Message) Fault {
		if down.Load() {
			tries.Add(1)
			return Unreachable
		}
		return Deliver
	}}
	c := config()
	c.MaxAttempts = 2
	down.Store(true)
	relay, _ := w.run(w.Store, faulty, c)
	var events []outbox.Event
	for i := range 500 {
		events = append(events, Event{Entity: fmt.Sprint(i % 20), N: int64(i + 1)})
	}
	w.enqueue(events...)
	w.eventually("the breaker opens", func() bool { return relay.Stats().Open })
	before := tries.Load()
	w.eventually("the broker is tried again, a little", func() bool { return tries.Load() >= before+3 })
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
	recording := &RecordingPublisher{}
	faulty := &FaultyPublisher{Next: recording, Decide: func(m *outbox.Message) Fault {
		if m.Key == "hangs" {
			return Hang
		}
		return Deliver
	}}
	c := config()
	c.Lease, c.PublishTimeout, c.MaxAttempts = time.Second, 50*time.Millisecond, 2
	relay, _ := w.run(w.Store, faulty, c)
	w.enqueue(Event{Entity: "hangs", N: 1})
	n := 0
	w.eventually("it is a dead letter, since others get through", func() bool {
		n++
		w.enqueue(Event{Entity: "passes", N: int64(n)})
		return relay.Stats().Dead == 1
	})
	w.ordered(w.wait(recording, n))
}

func testPanic(_ *testing.T, w *world) {
	recording := &RecordingPublisher{}
	faulty := &FaultyPublisher{Next: recording, Decide: func(m *outbox.Message) Fault {
		if number(m) == 1 && m.Attempts == 0 {
			return Panic
		}
		return Deliver
	}}
	relay, _ := w.run(w.Store, faulty, config())
	w.enqueue(Event{Entity: "panics", N: 1}, Event{Entity: "panics", N: 2})
	w.ordered(w.wait(recording, 2))
	w.equal("retried", relay.Stats().Retried, 1)
}

func testLostAcknowledgement(_ *testing.T, w *world) {
	var lost atomic.Int64
	recording := &RecordingPublisher{}
	faulty := &FaultyPublisher{Next: recording, Decide: func(*outbox.Message) Fault {
		if lost.Add(1) == 1 {
			return LoseAcknowledgement
		}
		return Deliver
	}}
	w.run(w.Store, faulty, config())
	ids := w.enqueue(Event{Entity: "a", N: 1})
	messages := w.wait(recording, 2)
	w.equal("ids", fmt.Sprint(messages[0].ID, messages[1].ID), fmt.Sprint(ids[0], ids[0]))
	w.eventually("it is settled", func() bool { return len(w.all()) == 0 })
}

// severed is a store whose relay is cut off from it: all its calls fail from then on, as after the end of its process.
type severed struct {
	outbox.Store
	cut atomic.Bool
}

var errSevered = errors.New("outboxtest: severed")

func (s *severed) err() error {
	if s.cut.Load() {
		return errSevered
	}
	return nil
}

func (s *severed) Join(ctx context.Context, relay outbox.ID, lease time.Duration) error {
	return cond(s, func() error { return s.Store.Join(ctx, relay, lease) })
}

func (s *severed) Renew(ctx context.Context, relay outbox.ID, lease time.Duration) (c outbox.Census, err error) {
	return c, cond(s, func() error { c, err = s.Store.Renew(ctx, relay, lease); return err })
}

func (s *severed) Take(ctx context.Context, relay outbox.ID, n int, held []outbox.Ownership) (o []outbox.Ownership, err error) {
	return o, cond(s, func() error { o, err = s.Store.Take(ctx, relay, n, held); return err })
}

func (s *severed) Leave(ctx context.Context, relay outbox.ID) error {
	return cond(s, func() error { return s.Store.Leave(ctx, relay) })
}

func (s *severed) Published(ctx context.Context, relay outbox.ID, owned []outbox.Ownership, at []outbox.Position) (n int, err error) {
	return n, cond(s, func() error { n, err = s.Store.Published(ctx, relay, owned, at); return err })
}

func (s *severed) Retry(ctx context.Context, relay outbox.ID, owned []outbox.Ownership, retries []outbox.Retry) (n int, err error) {
	return n, cond(s, func() error { n, err = s.Store.Retry(ctx, relay, owned, retries); return err })
}

func (s *severed) Read(ctx context.Context, reads []outbox.ShardRead, known []int64, maxBytes int) (m []outbox.Message, err error) {
	return m, cond(s, func() error { m, err = s.Store.Read(ctx, reads, known, maxBytes); return err })
}

func cond(s *severed, f func() error) error {
	if err := s.err(); err != nil {
		return err
	}
	return f()
}

func testVanished(_ *testing.T, w *world) {
	first := &severed{Store: w.Store}
	recording := &RecordingPublisher{}
	c := config()
	c.Lease, c.PublishTimeout = 600*time.Millisecond, 200*time.Millisecond
	dying := &FaultyPublisher{Next: recording, Decide: func(*outbox.Message) Fault {
		first.cut.Store(true) // published, and never settled
		return Deliver
	}}
	w.enqueue(Event{Entity: "a", N: 1}, Event{Entity: "b", N: 1}, Event{N: 1})
	w.run(first, dying, c)
	w.wait(recording, 1)
	w.run(w.Store, recording, c)
	w.eventually("everything is settled by another", func() bool { return len(w.all()) == 0 })
	distinct := map[outbox.ID]bool{}
	for _, m := range recording.Messages() {
		distinct[m.ID] = true
	}
	w.equal("events published", len(distinct), 3)
}

// testStalled has a relay publish, lose its lease and come back with its settle.
func testStalled(_ *testing.T, w *world) {
	w.enqueue(Event{Entity: "a", N: 1})
	at := positions(w.all())
	stalled, owned := w.join(30 * time.Millisecond)
	heir := uuid.New()
	w.must(w.Store.Join(w.Context(), heir, time.Minute))
	w.eventually("the lease ends", func() bool {
		taken, err := w.Store.Take(w.Context(), heir, Shards, nil)
		w.must(err)
		return len(taken) == Shards
	})
	n, err := w.Store.Published(w.Context(), stalled, owned, at)
	w.must(err)
	w.equal("settled by the stalled relay", n, 0)
	w.equal("pending", len(w.all()), 1)
}

// testPoison has one event end every relay that publishes it.
func testPoison(_ *testing.T, w *world) {
	c := config()
	c.Lease, c.PublishTimeout, c.MaxAttempts = 400*time.Millisecond, 200*time.Millisecond, 3
	recording := &RecordingPublisher{}
	w.enqueue(Event{Entity: "poison", N: 1}, Event{Entity: "poison", N: 2}, Event{Entity: "bystander", N: 1}, Event{N: 1})
	dead := func() bool {
		letters, err := w.Store.ListDead(w.Context(), 10)
		w.must(err)
		return len(letters) > 0
	}
	for lives := 0; !dead(); lives++ {
		if lives > 10 {
			w.Fatal("the event has ended 10 relays and is not dead")
		}
		mortal := &severed{Store: w.Store}
		died := make(chan struct{})
		relay, stop := w.run(mortal, &FaultyPublisher{Next: recording, Decide: func(m *outbox.Message) Fault {
			if m.Key == "poison" && number(m) == 1 && mortal.cut.CompareAndSwap(false, true) {
				close(died)
				return Hang
			}
			if mortal.cut.Load() {
				return Hang
			}
			return Deliver
		}}, c)
		w.eventually("the relay dies of it, or it is dead", func() bool {
			select {
			case <-died:
				return true
			default:
				return relay.Stats().Dead > 0
			}
		})
		stop()
	}
	w.run(w.Store, recording, c)
	w.eventually("the others are published", func() bool { return len(w.all()) == 0 })
	letters, err := w.Store.ListDead(w.Context(), 10)
	w.must(err)
	w.equal("dead letters", len(letters), 1)
	w.equal("the dead", fmt.Sprint(letters[0].Key, " ", number(&letters[0].Message), " ", letters[0].Attempts), "poison 1 3")
}

func testHandOver(_ *testing.T, w *world) {
	c := config()
	c.Lease, c.PublishTimeout = 600*time.Millisecond, 200*time.Millisecond
	recording := &RecordingPublisher{}
	first, stopFirst := w.run(w.Store, recording, c)
	w.eventually("the first has all shards", func() bool { return first.Stats().Shards == Shards })
	second, _ := w.run(w.Store, recording, c)
	w.eventually("each has half", func() bool {
		return first.Stats().Shards == Shards/2 && second.Stats().Shards == Shards/2
	})
	stopFirst()
	w.eventually("the second has all", func() bool { return second.Stats().Shards == Shards })
	w.enqueue(Event{Entity: "a", N: 1}, Event{N: 2})
	w.once(w.wait(recording, 2), 2)
}

// blocking publishes when it is told to.
type blocking struct {
	outbox.Publisher
	began, goOn chan struct{}
}

func (p *blocking) Publish(ctx context.Context, m *outbox.Message) error {
	p.began <- struct{}{}
	<-p.goOn
	return p.Publisher.Publish(ctx, m)
}

func testDrain(_ *testing.T, w *world) {
	recording := &RecordingPublisher{}
	slow := &blocking{Publisher: recording, began: make(chan struct{}, 10), goOn: make(chan struct{})}
	c := config()
	c.Concurrency = 1
	relay, stop := w.run(w.Store, slow, c)
	w.enqueue(Event{Entity: "a", N: 1}, Event{Entity: "a", N: 2}, Event{N: 3})
	<-slow.began
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	for ended := false; !ended; { // what has begun goes on, however long it takes
		select {
		case <-stopped:
			ended = true
		case slow.goOn <- struct{}{}:
		}
	}
	n := len(recording.Messages())
	w.equal("settled", relay.Stats().Published, n)
	w.equal("at least what was under way was published", n > 0, true)
	w.equal("pending", len(w.all()), 3-n)
	heir := uuid.New()
	w.must(w.Store.Join(w.Context(), heir, time.Minute))
	free, err := w.Store.Take(w.Context(), heir, Shards, nil)
	w.must(err)
	w.equal("free shards", len(free), Shards)
}

// testManyHeld holds more keys than are resumed at once, and lets all go.
func testManyHeld(_ *testing.T, w *world) {
	var broken atomic.Bool
	broken.Store(true)
	recording := &RecordingPublisher{}
	faulty := &FaultyPublisher{Next: recording, Decide: func(m *outbox.Message) Fault {
		if broken.Load() {
			return Refuse
		}
		return Deliver
	}}
	c := config()
	c.MaxAttempts = 1 << 20
	relay, _ := w.run(w.Store, faulty, c)
	for n := range 3 {
		var events []outbox.Event
		for k := range 300 {
			events = append(events, Event{Entity: fmt.Sprint("key ", k), N: int64(n + 1)})
		}
		w.enqueue(events...)
	}
	w.eventually("all keys are held", func() bool { return relay.Stats().Held == 300 })
	broken.Store(false)
	messages := w.wait(recording, 900)
	w.ordered(messages)
	w.once(messages, 900)
}
