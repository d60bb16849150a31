package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/subscribe"
)

func testComesAgain(s *subscribing) {
	s.publish(message(secretKey))
	var calls atomic.Int64
	m := s.subscribe(applying(func(context.Context, *outbox.Message) error {
		switch calls.Add(1) {
		case 1:
			return errors.New("no stock")
		case 2:
			return fmt.Errorf("again: %w", inbox.ErrInFlight)
		case 3:
			return &inbox.PanicError{Value: secretPayload, Stack: "goroutine 7"}
		default:
			return nil
		}
	}), subscribe.Config{MinRetryDelay: 1, MaxRetryDelay: time.Millisecond})
	s.untilSettled(0)
	s.end(m)
	s.expect(m, subscribe.Stats{Acknowledged: 1, Retried: 3})
	for _, want := range []string{"no stock", "attempt=1", "thing.happened@1", "goroutine 7"} {
		if !strings.Contains(m.log.String(), want) {
			s.Errorf("the log has no %q:\n%s", want, m.log)
		}
	}
	if strings.Contains(m.log.String(), "again:") {
		s.Errorf("the log has lines that are not needed:\n%s", m.log)
	}
}

func testOrderWhileRetried(s *subscribing) {
	const keys, each = 5, 12
	publish := func(from, to int) {
		for i := from; i < to; i++ {
			for k := range keys {
				s.publish(body(fmt.Sprint("k", k), fmt.Sprintf("k%d-%02d", k, i)))
			}
		}
	}
	publish(0, each/2)
	var mu sync.Mutex
	last, failures := map[string]string{}, map[string]int{}
	failed := make(chan struct{})
	m := s.subscribe(applying(func(_ context.Context, m *outbox.Message) error {
		mu.Lock()
		defer mu.Unlock()
		this := string(m.Payload)
		if m.Key == "k0" && failures[this] < 3 {
			if failures[this]++; len(failures) == 1 && failures[this] == 1 {
				close(failed)
			}
			return errors.New("not yet")
		}
		if this <= last[m.Key] {
			s.Errorf("%s was applied after %s", this, last[m.Key])
		}
		last[m.Key] = this
		return nil
	}), subscribe.Config{Concurrency: 3})
	wait(s, failed)
	publish(each/2, each) // successors that are fetched only after the failure
	s.untilSettled(0)
	s.end(m)
	s.expect(m, subscribe.Stats{Acknowledged: keys * each, Retried: 3 * each})
}

// testOthersContinue has a key that comes again after weeks, and not before the others are handled.
func testOthersContinue(s *subscribing) {
	const bad, good = 50, 20
	for range bad {
		s.publish(message(secretKey))
	}
	for i := range good {
		s.publish(message(fmt.Sprint(i)))
	}
	m := s.subscribe(applying(func(_ context.Context, m *outbox.Message) error {
		if m.Key == secretKey {
			return errors.New("never")
		}
		return nil
	}), subscribe.Config{
		Concurrency: 2, MinRetryDelay: 10_000 * time.Hour, MaxRetryDelay: 10_000 * time.Hour,
	})
	s.untilSettled(bad)
	s.end(m)
	s.expect(m, subscribe.Stats{Acknowledged: good, Retried: 1})
}

func testCrash(s *subscribing) {
	m := message(secretKey)
	s.publish(m)
	started, release := make(chan struct{}, 1), make(chan struct{})
	crashed := s.subscribe(applying(func(context.Context, *outbox.Message) error {
		select {
		case started <- struct{}{}:
		default:
		}
		<-release
		return nil
	}), subscribe.Config{})
	released := sync.OnceFunc(func() { close(release) })
	s.Cleanup(released)
	wait(s, started)
	crashed.Crash()
	again := make(chan outbox.ID, 100)
	s.subscribe(applying(func(_ context.Context, m *outbox.Message) error {
		again <- m.ID
		return nil
	}), subscribe.Config{})
	wait(s, again)
	released()
	s.untilSettled(0)
}

// testExtended has a handler that takes longer than two AckWaits, and an event that waits behind
// it.
func testExtended(s *subscribing) {
	if s.Extensions == nil {
		s.Skip("the broker does not deliver again on its own")
	}
	s.publish(body("k", "slow"), body("k", "behind"))
	var handled record
	started, release := make(chan struct{}), make(chan struct{})
	m := s.subscribe(applying(func(_ context.Context, m *outbox.Message) error {
		if handled.add(string(m.Payload)) == 1 {
			close(started)
			<-release
		}
		return nil
	}), subscribe.Config{})
	released := sync.OnceFunc(func() { close(release) })
	s.Cleanup(released)
	wait(s, started)
	// Both are extended three times per AckWait.
	s.eventually("extended for two AckWaits", func() bool { return s.Extensions() >= 2*2*3 })
	released()
	s.untilSettled(0)
	s.end(m)
	if got := handled.all(); !slices.Equal(got, []string{"slow", "behind"}) {
		s.Errorf("handled %q, want each once, in order", got)
	}
	s.expect(m, subscribe.Stats{Acknowledged: 2})
}

func testHangs(s *subscribing) {
	s.publish(message(secretKey))
	var calls atomic.Int64
	s.subscribe(applying(func(ctx context.Context, _ *outbox.Message) error {
		if calls.Add(1) > 1 {
			return nil
		}
		<-ctx.Done() // as a handler that waits for a connection
		return ctx.Err()
	}), subscribe.Config{HandleTimeout: 50 * time.Millisecond})
	s.untilSettled(0)
}

// testUnreadable leaves the malformed message with the broker: another release may read it.
func testUnreadable(s *subscribing) {
	for _, publish := range []func(context.Context) error{s.PublishForeign, s.PublishMalformed} {
		if err := publish(s.Context()); err != nil {
			s.Fatal(err)
		}
		s.publish(message(secretKey))
	}
	m := s.subscribe(applying(func(context.Context, *outbox.Message) error { return nil }),
		subscribe.Config{MinRetryDelay: 10_000 * time.Hour, MaxRetryDelay: 10_000 * time.Hour})
	s.untilSettled(1)
	s.end(m)
	s.expect(m, subscribe.Stats{Acknowledged: 2, Malformed: 1, Foreign: 1})
	for _, want := range []string{"no event of an outbox", "cannot be read"} {
		if !strings.Contains(m.log.String(), want) {
			s.Errorf("the log has no %q:\n%s", want, m.log)
		}
	}
}

// testUnknownVersion has members of two releases. The older one may get the event any number of
// times, and is never the one that applies it.
func testUnknownVersion(s *subscribing) {
	var returned, applied atomic.Int64
	older := s.subscribe(handlerFunc(
		func(context.Context, *outbox.Message) (inbox.Outcome, error) {
			returned.Add(1)
			return inbox.OutcomeFailed, inbox.ErrUnknownVersion
		}), subscribe.Config{})
	s.publish(message(secretKey))
	s.eventually("handed back", func() bool { return returned.Load() > 0 })
	s.subscribe(applying(func(context.Context, *outbox.Message) error {
		applied.Add(1)
		return nil
	}), subscribe.Config{})
	s.untilSettled(0)
	s.end(older)
	s.expect(older, subscribe.Stats{UnknownVersion: returned.Load()})
	if applied.Load() != 1 {
		s.Errorf("applied %d times, want once", applied.Load())
	}
}

// testOtherVersion publishes one fact in several versions, of which the consumer knows one. That
// one may come after another that waits. Later events of the key wait for all of them.
func testOtherVersion(s *subscribing) {
	var fact [3]*outbox.Message
	successors := map[outbox.ID]bool{}
	for i, order := range [][]int32{{2, 1}, {1, 2}, {3, 2, 1}} {
		key := fmt.Sprint("k", i)
		fact[i] = message(key)
		for _, version := range order {
			m := *fact[i]
			m.Version = version
			s.publish(&m)
		}
		successor := message(key)
		successors[successor.ID] = true
		s.publish(successor)
	}
	var mu sync.Mutex
	applied := map[string]int{}
	s.subscribe(handlerFunc(func(_ context.Context, m *outbox.Message) (inbox.Outcome, error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case successors[m.ID] && applied[m.Key] != 1:
			s.Errorf("%s: the successor came before the event", m.Key)
		case !successors[m.ID] && m.Version != 1 && applied[m.Key] == 0:
			return inbox.OutcomeFailed, inbox.ErrUnknownVersion
		case !successors[m.ID] && m.Version != 1:
			return inbox.OutcomeDuplicate, nil
		}
		applied[m.Key]++
		return inbox.OutcomeApplied, nil
	}), subscribe.Config{})
	s.untilSettled(0)
	mu.Lock()
	defer mu.Unlock()
	if want := map[string]int{"k0": 2, "k1": 2, "k2": 2}; !maps.Equal(applied, want) {
		s.Errorf("applied %v, want event and successor once each", applied)
	}
}

// testBrokerOutage takes the broker away while an event is being handled, so that its
// acknowledgement is lost.
func testBrokerOutage(s *subscribing) {
	if s.Stop == nil {
		s.Skip("the harness cannot stop the broker")
	}
	before, after := message("k"), message("k")
	s.publish(before)
	started, release := make(chan struct{}), make(chan struct{})
	var handled record
	m := s.subscribe(applying(func(_ context.Context, m *outbox.Message) error {
		if handled.add(m.ID.String()) == 1 {
			close(started)
			<-release
		}
		return nil
	}), subscribe.Config{})
	released := sync.OnceFunc(func() { close(release) })
	s.Cleanup(released)
	wait(s, started)
	s.Stop()
	released()
	s.Restart()
	s.eventually("published after the restart", func() bool {
		return s.Publisher.Publish(s.Context(), after) == nil
	})
	s.untilSettled(0)
	s.end(m)
	// Deliveries may repeat, but not after a later event of the key was handled for the first time
	// without the earlier one having been.
	if got := handled.all(); got[0] != before.ID.String() ||
		!slices.Contains(got, after.ID.String()) {
		s.Errorf("handled %v, want %s and then %s", got, before.ID, after.ID)
	}
}

// testGracefulEnd would take an hour if anything were left to the broker.
func testGracefulEnd(s *subscribing) {
	const n = 13
	s.publish(message("k"), message("k"), message("k"))
	for i := range n - 3 {
		s.publish(message(fmt.Sprint(i)))
	}
	started, release := make(chan struct{}), make(chan struct{})
	first := s.subscribe(applying(func(ctx context.Context, _ *outbox.Message) error {
		close(started) // a second call panics
		<-release
		return ctx.Err()
	}), subscribe.Config{Concurrency: 1})
	released := sync.OnceFunc(func() { close(release) })
	s.Cleanup(released)
	wait(s, started)
	first.cancel()
	var rest atomic.Int64
	second := s.subscribe(applying(func(context.Context, *outbox.Message) error {
		rest.Add(1)
		return nil
	}), subscribe.Config{Concurrency: 1})
	s.untilSettled(1)
	select {
	case <-first.done:
		s.Error("Run returned while an event was being handled")
	default:
	}
	released()
	s.end(first)
	s.untilSettled(0)
	s.end(second)
	s.expect(first, subscribe.Stats{Acknowledged: 1})
	s.expect(second, subscribe.Stats{Acknowledged: n - 1})
	if rest.Load() != n-1 {
		s.Errorf("the second member handled %d deliveries, want the other %d", rest.Load(), n-1)
	}
}

func testCancelledEnd(s *subscribing) {
	s.publish(message(secretKey))
	started := make(chan struct{}, 1)
	m := s.subscribe(applying(func(ctx context.Context, _ *outbox.Message) error {
		select {
		case started <- struct{}{}:
		default:
		}
		<-ctx.Done()
		return ctx.Err()
	}), subscribe.Config{DrainTimeout: 10 * time.Millisecond})
	wait(s, started)
	s.end(m)
}
