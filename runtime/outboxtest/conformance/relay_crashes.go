package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// severed is a store that can cut its relay off: from then on no call has an effect, as if the
// relay's process had ended. The calls return that the relay is fenced off, so that it ends soon.
type severed struct {
	storage.Store
	cut atomic.Bool

	mu    sync.Mutex // held during a renewal, so that none comes after the last one
	relay storage.ID
}

// sever cuts the relay off and ends its lease. It returns true the first time.
func (s *severed) sever() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut.Swap(true) {
		return false
	}
	_, _ = s.Store.Renew(context.Background(),
		storage.RenewParams{Relay: s.relay, Lease: time.Microsecond})
	return true
}

var errSevered = errors.New("outboxtest: severed")

func (s *severed) Join(ctx context.Context, p storage.JoinParams) (storage.JoinResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.relay = p.Relay
	return unlessSevered(s, func() (storage.JoinResult, error) { return s.Store.Join(ctx, p) })
}

func (s *severed) Renew(ctx context.Context, p storage.RenewParams) (storage.RenewResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return unlessSevered(s, func() (storage.RenewResult, error) { return s.Store.Renew(ctx, p) })
}

func (s *severed) Take(ctx context.Context, p storage.TakeParams) (storage.TakeResult, error) {
	return unlessSevered(s, func() (storage.TakeResult, error) { return s.Store.Take(ctx, p) })
}

func (s *severed) Release(
	ctx context.Context, p storage.ReleaseParams,
) (storage.ReleaseResult, error) {
	return unlessSevered(s,
		func() (storage.ReleaseResult, error) { return s.Store.Release(ctx, p) })
}

func (s *severed) Leave(ctx context.Context, p storage.LeaveParams) (storage.LeaveResult, error) {
	return unlessSevered(s, func() (storage.LeaveResult, error) { return s.Store.Leave(ctx, p) })
}

func (s *severed) Settle(
	ctx context.Context, p storage.SettleParams,
) (storage.SettleResult, error) {
	if s.cut.Load() {
		return storage.SettleResult{}, nil
	}
	return s.Store.Settle(ctx, p)
}

func (s *severed) Read(ctx context.Context, p storage.ReadParams) (storage.ReadResult, error) {
	return unlessSevered(s, func() (storage.ReadResult, error) { return s.Store.Read(ctx, p) })
}

func (s *severed) Check(ctx context.Context, p storage.CheckParams) (storage.CheckResult, error) {
	if s.cut.Load() {
		return storage.CheckResult{}, storage.ErrLeaseLost
	}
	return s.Store.Check(ctx, p)
}

func unlessSevered[T any](s *severed, f func() (T, error)) (T, error) {
	if s.cut.Load() {
		var none T
		return none, errSevered
	}
	return f()
}

func testVanished(_ *testing.T, w *world) {
	first := &severed{Store: w.Store}
	recording := &outboxtest.RecordingPublisher{}
	c := config()
	// The relay that is cut off cannot drain.
	c.PublishTimeout = 200 * time.Millisecond
	dying := &outboxtest.FaultyPublisher{Next: recording,
		Decide: func(*outbox.Message) outboxtest.Fault {
			first.sever() // published, and never settled
			return outboxtest.Deliver
		}}
	w.enqueue(outboxtest.Event{Entity: "a", N: 1}, outboxtest.Event{Entity: "b", N: 1},
		outboxtest.Event{N: 1})
	w.run(first, dying, c)
	w.wait(recording, 1)
	w.run(w.Store, recording, config())
	w.eventually("everything is settled by another", func() bool { return len(w.all()) == 0 })
	w.equal("events published", w.distinct(recording), 3)
}

// distinct returns how many events were published, however often.
func (w *world) distinct(p *outboxtest.RecordingPublisher) int {
	ids := map[outbox.ID]bool{}
	for _, m := range p.Messages() {
		ids[m.ID] = true
	}
	return len(ids)
}

// testStalled has a relay publish, lose its lease and come back with its settle.
func testStalled(_ *testing.T, w *world) {
	w.enqueue(outboxtest.Event{Entity: "a", N: 1})
	at := positions(w.all())
	stalled, owned := w.join(time.Hour)
	w.equal("shards", len(owned), Shards)
	w.expire(stalled)
	heir := w.register(time.Minute)
	w.eventually("the lease ends", func() bool {
		return len(w.take(heir, Shards, nil)) == Shards
	})
	n := w.settle(storage.SettleParams{Relay: stalled, Owned: owned, Published: at})
	w.equal("settled by the stalled relay", n, 0)
	w.equal("pending", len(w.all()), 1)
}

// testPoison has one event end every relay that publishes it.
func testPoison(_ *testing.T, w *world) {
	c := config()
	// A relay that is cut off cannot drain.
	c.PublishTimeout, c.MaxAttempts = 200*time.Millisecond, 3
	recording := &outboxtest.RecordingPublisher{}
	w.enqueue(outboxtest.Event{Entity: "poison", N: 1}, outboxtest.Event{Entity: "poison", N: 2},
		outboxtest.Event{Entity: "bystander", N: 1}, outboxtest.Event{N: 1})
	dead := func() bool {
		return len(w.deadLetters(10)) > 0
	}
	for lives := 0; !dead(); lives++ {
		if lives > 10 {
			w.Fatal("the event has ended 10 relays and is not dead")
		}
		mortal := &severed{Store: w.Store}
		died := make(chan struct{})
		relay, stop := w.run(mortal,
			&outboxtest.FaultyPublisher{Next: recording,
				Decide: func(m *outbox.Message) outboxtest.Fault {
					if m.Key == "poison" && number(m) == 1 && mortal.sever() {
						close(died)
						return outboxtest.Hang
					}
					if mortal.cut.Load() {
						return outboxtest.Hang
					}
					return outboxtest.Deliver
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
	c.PublishTimeout = hangTimeout
	w.run(w.Store, recording, c)
	w.eventually("the others are published", func() bool { return len(w.all()) == 0 })
	letters := w.deadLetters(10)
	w.equal("dead letters", len(letters), 1)
	w.equal("the dead", fmt.Sprint(
		letters[0].Key, " ", number(&letters[0].Message), " ", letters[0].Attempts,
	), "poison 1 3")
}

func testHandOver(_ *testing.T, w *world) {
	c := config()
	// Shards are given back every third of a lease.
	c.Lease, c.PublishTimeout = 3*time.Second, time.Second
	recording := &outboxtest.RecordingPublisher{}
	first, stopFirst := w.run(w.Store, recording, c)
	w.eventually("the first has all shards", func() bool { return first.Stats().Shards == Shards })
	second, _ := w.run(w.Store, recording, c)
	w.eventually("each has half", func() bool {
		return first.Stats().Shards == Shards/2 && second.Stats().Shards == Shards/2
	})
	stopFirst()
	w.eventually("the second has all", func() bool { return second.Stats().Shards == Shards })
	w.enqueue(outboxtest.Event{Entity: "a", N: 1}, outboxtest.Event{N: 2})
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
	recording := &outboxtest.RecordingPublisher{}
	slow := &blocking{Publisher: recording, began: make(chan struct{}, 10),
		goOn: make(chan struct{})}
	c := config()
	c.Concurrency = 1
	relay, stop := w.run(w.Store, slow, c)
	w.enqueue(outboxtest.Event{Entity: "a", N: 1}, outboxtest.Event{Entity: "a", N: 2},
		outboxtest.Event{N: 3})
	<-slow.began
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	for ended := false; !ended; { // wait for calls that have begun, however long they take
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
	w.equal("free shards", len(w.take(w.register(time.Minute), Shards, nil)), Shards)
}
