package outboxtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// severed is a store whose relay is cut off from it: nothing that it does has an effect from then
// on, as after the end of its process. It finds itself fenced off, so that it ends soon.
type severed struct {
	outbox.Store
	cut atomic.Bool

	mu    sync.Mutex // held during a renewal, so that none comes after the last one
	relay outbox.ID
}

// sever cuts the relay off and ends its lease. It returns true the first time.
func (s *severed) sever() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut.Swap(true) {
		return false
	}
	_, _ = s.Store.Renew(context.Background(), s.relay, time.Microsecond)
	return true
}

var errSevered = errors.New("outboxtest: severed")

func (s *severed) err() error {
	if s.cut.Load() {
		return errSevered
	}
	return nil
}

func (s *severed) Join(ctx context.Context, relay outbox.ID, lease time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.relay = relay
	return cond(s, func() error { return s.Store.Join(ctx, relay, lease) })
}

func (s *severed) Renew(ctx context.Context, relay outbox.ID, lease time.Duration) (c outbox.Census, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c, cond(s, func() error { c, err = s.Store.Renew(ctx, relay, lease); return err })
}

func (s *severed) Take(ctx context.Context, relay outbox.ID, n int, held []outbox.Ownership) (o []outbox.Ownership, err error) {
	return o, cond(s, func() error { o, err = s.Store.Take(ctx, relay, n, held); return err })
}

func (s *severed) Release(ctx context.Context, relay outbox.ID, shards []outbox.Ownership) error {
	return cond(s, func() error { return s.Store.Release(ctx, relay, shards) })
}

func (s *severed) Leave(ctx context.Context, relay outbox.ID) error {
	return cond(s, func() error { return s.Store.Leave(ctx, relay) })
}

func (s *severed) Published(ctx context.Context, relay outbox.ID, owned []outbox.Ownership, at []outbox.Position) (n int, err error) {
	if s.cut.Load() {
		return 0, nil
	}
	return s.Store.Published(ctx, relay, owned, at)
}

func (s *severed) Retry(ctx context.Context, relay outbox.ID, owned []outbox.Ownership, retries []outbox.Retry) (n int, err error) {
	if s.cut.Load() {
		return 0, nil
	}
	return s.Store.Retry(ctx, relay, owned, retries)
}

func (s *severed) Read(ctx context.Context, reads []outbox.ShardRead, known []int64, maxBytes int) (m []outbox.Message, err error) {
	return m, cond(s, func() error { m, err = s.Store.Read(ctx, reads, known, maxBytes); return err })
}

func (s *severed) Check(ctx context.Context, relay outbox.ID) (i outbox.Incarnation, err error) {
	if s.cut.Load() {
		return i, outbox.ErrLeaseLost
	}
	return s.Store.Check(ctx, relay)
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
	// It is for the end of the one that is cut off, which cannot drain.
	c.PublishTimeout = 200 * time.Millisecond
	dying := &FaultyPublisher{Next: recording, Decide: func(*outbox.Message) Fault {
		first.sever() // published, and never settled
		return Deliver
	}}
	w.enqueue(Event{Entity: "a", N: 1}, Event{Entity: "b", N: 1}, Event{N: 1})
	w.run(first, dying, c)
	w.wait(recording, 1)
	w.run(w.Store, recording, config())
	w.eventually("everything is settled by another", func() bool { return len(w.all()) == 0 })
	w.equal("events published", w.distinct(recording), 3)
}

// distinct returns how many events were published, however often.
func (w *world) distinct(p *RecordingPublisher) int {
	ids := map[outbox.ID]bool{}
	for _, m := range p.Messages() {
		ids[m.ID] = true
	}
	return len(ids)
}

// testStalled has a relay publish, lose its lease and come back with its settle.
func testStalled(_ *testing.T, w *world) {
	w.enqueue(Event{Entity: "a", N: 1})
	at := positions(w.all())
	stalled, owned := w.join(time.Hour)
	w.equal("shards", len(owned), Shards)
	w.expire(stalled)
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
	// A relay that is cut off cannot drain.
	c.PublishTimeout, c.MaxAttempts = 200*time.Millisecond, 3
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
			if m.Key == "poison" && number(m) == 1 && mortal.sever() {
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
		mortal.sever() // if it has not died, it may not have been able to leave in time
	}
	c.PublishTimeout = patience
	w.run(w.Store, recording, c)
	w.eventually("the others are published", func() bool { return len(w.all()) == 0 })
	letters, err := w.Store.ListDead(w.Context(), 10)
	w.must(err)
	w.equal("dead letters", len(letters), 1)
	w.equal("the dead", fmt.Sprint(letters[0].Key, " ", number(&letters[0].Message), " ", letters[0].Attempts), "poison 1 3")
}

func testHandOver(_ *testing.T, w *world) {
	c := config()
	// Shards are given back every third of a lease.
	c.Lease, c.PublishTimeout = 3*time.Second, time.Second
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
	w.eventually("both are published", func() bool { return w.distinct(recording) == 2 })
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
