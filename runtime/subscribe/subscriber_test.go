package subscribe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/subscribe"
)

// patience ends a test that hangs.
const patience = time.Minute

type handlerFunc func(ctx context.Context, m *outbox.Message) (inbox.Outcome, error)

func (f handlerFunc) Handle(ctx context.Context, m *outbox.Message) (inbox.Outcome, error) {
	return f(ctx, m)
}

func event(name, key string) *outbox.Message {
	return &outbox.Message{ID: uuid.New(), Type: name, Version: 1, Key: key, Payload: []byte("{}")}
}

func publish(t *testing.T, b *broker, messages ...*outbox.Message) {
	t.Helper()
	for _, m := range messages {
		if err := b.Publish(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs a subscriber until the returned function is called, which returns Run's error.
func run(
	t *testing.T, s subscribe.Source, h inbox.Handler, log io.Writer,
) (_ *subscribe.Subscriber, end func() error) {
	t.Helper()
	subscriber, err := subscribe.New(s, h, subscribe.Config{
		Concurrency: 1, MinRetryDelay: 1, MaxRetryDelay: time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- subscriber.Run(ctx) }()
	end = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { _ = end() })
	return subscriber, end
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// TestTheRestIsReleasedBeforeHandlersEnd: other members need not wait for them.
func TestTheRestIsReleasedBeforeHandlersEnd(t *testing.T) {
	t.Parallel()
	b := newBroker(time.Hour)
	publish(t, b, event("x", "k"), event("x", "k"), event("x", "k"), event("x", "other"))
	started, release := make(chan struct{}), make(chan struct{})
	s, end := run(t, &source{broker: b}, handlerFunc(
		func(context.Context, *outbox.Message) (inbox.Outcome, error) {
			close(started) // a second call panics
			<-release
			return inbox.OutcomeApplied, nil
		}), io.Discard)
	<-started
	ended := make(chan error, 1)
	go func() { ended <- end() }()
	eventually(t, "three released", func() bool {
		return b.count(func() int { return b.released }) >= 3
	})
	close(release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got, want := s.Stats(), (subscribe.Stats{Acknowledged: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestRunEndsOnceTheConsumerIsGone(t *testing.T) {
	t.Parallel()
	b := newBroker(time.Hour)
	publish(t, b, event("x", "k"))
	started, release := make(chan struct{}), make(chan struct{})
	member := &source{broker: b}
	subscriber, err := subscribe.New(member, handlerFunc(
		func(context.Context, *outbox.Message) (inbox.Outcome, error) {
			close(started)
			<-release
			return inbox.OutcomeApplied, nil
		}), subscribe.Config{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- subscriber.Run(context.Background()) }()
	<-started
	member.crash()
	close(release)
	if err := <-done; !errors.Is(err, subscribe.ErrConsumerGone) {
		t.Errorf("got %v, want ErrConsumerGone", err)
	}
	if n := b.count(func() int { return len(b.kept) }); n != 1 {
		t.Errorf("the broker keeps %d messages, want the one that was being handled", n)
	}
}

// TestRunEndsIfTheDatabaseCannotBeUsed has the inbox say that no retry mends it. What was delivered
// stays with the broker.
func TestRunEndsIfTheDatabaseCannotBeUsed(t *testing.T) {
	t.Parallel()
	for _, why := range []error{outbox.ErrUnusable, outbox.ErrMigrationMissing} {
		b := newBroker(time.Hour)
		publish(t, b, event("x", "k"), event("x", "other"))
		subscriber, err := subscribe.New(&source{broker: b}, handlerFunc(
			func(context.Context, *outbox.Message) (inbox.Outcome, error) {
				return inbox.OutcomeFailed, fmt.Errorf("claim: %w", why)
			}), subscribe.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := subscriber.Run(t.Context()); !errors.Is(err, why) {
			t.Errorf("got %v, want %v", err, why)
		}
		if n := b.count(func() int { return len(b.kept) }); n != 2 {
			t.Errorf("%v: the broker keeps %d messages, want both", why, n)
		}
	}
}

// TestASubscriberCanWaitForAMigration has the tables come while messages are handed back.
func TestASubscriberCanWaitForAMigration(t *testing.T) {
	t.Parallel()
	b := newBroker(time.Hour)
	publish(t, b, event("x", "k"))
	var tries atomic.Int64
	subscriber, err := subscribe.New(&source{broker: b}, handlerFunc(
		func(context.Context, *outbox.Message) (inbox.Outcome, error) {
			if tries.Add(1) < 3 {
				return inbox.OutcomeFailed, fmt.Errorf("claim: %w", outbox.ErrMigrationMissing)
			}
			return inbox.OutcomeApplied, nil
		}), subscribe.Config{
		WaitForSchema: true, MinRetryDelay: 1, MaxRetryDelay: time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- subscriber.Run(ctx) }()
	eventually(t, "the message is applied", func() bool {
		return b.count(func() int { return len(b.kept) }) == 0
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestWhatComesAgainAndAgainIsLoggedOnce counts the lines on types that are ignored, and on
// versions that are handed back.
func TestWhatComesAgainAndAgainIsLoggedOnce(t *testing.T) {
	t.Parallel()
	b := newBroker(time.Minute)
	for range 20 {
		publish(t, b, event("ignored", ""), event("ignored.too", ""), event("unknown", ""))
	}
	var returned atomic.Int64
	log := &lockedBuffer{}
	run(t, &source{broker: b}, handlerFunc(
		func(_ context.Context, m *outbox.Message) (inbox.Outcome, error) {
			if m.Type == "unknown" && returned.Add(1) <= 100 {
				return inbox.OutcomeFailed, inbox.ErrUnknownVersion
			}
			return inbox.OutcomeIgnored, nil
		}), log)
	eventually(t, "all settled", func() bool {
		return b.count(func() int { return len(b.kept) }) == 0
	})
	for _, line := range []string{
		"level=INFO.*event=ignored@1", "level=INFO.*event=ignored.too@1",
		"level=WARN.*event=unknown@1",
	} {
		if got := len(regexp.MustCompile(line).FindAllString(log.String(), -1)); got != 1 {
			t.Errorf("%d lines match %s, want 1:\n%s", got, line, log)
		}
	}
}

// moody is a source whose fetches fail in turn, before they work.
type moody struct {
	*source
	failures []error
}

func (m *moody) Fetch(ctx context.Context, n int, deliver func(*subscribe.Delivery)) error {
	if len(m.failures) > 0 {
		err := m.failures[0]
		m.failures = m.failures[1:]
		return err
	}
	return m.source.Fetch(ctx, n, deliver)
}

// TestFailedFetchesAreLogged does not count silence as a failure, since brokers have nothing to say
// at times.
func TestFailedFetchesAreLogged(t *testing.T) {
	t.Parallel()
	b := newBroker(time.Minute)
	publish(t, b, event("x", ""))
	log := &lockedBuffer{}
	run(t, &moody{&source{broker: b}, []error{
		fmt.Errorf("asleep: %w", subscribe.ErrNoAnswer), errors.New("no leader"),
	}}, handlerFunc(func(context.Context, *outbox.Message) (inbox.Outcome, error) {
		return inbox.OutcomeApplied, nil
	}), log)
	eventually(t, "settled", func() bool { return b.count(func() int { return len(b.kept) }) == 0 })
	for line, want := range map[string]int{"no leader": 1, "asleep": 0} {
		if got := len(regexp.MustCompile(line).FindAllString(log.String(), -1)); got != want {
			t.Errorf("%d lines match %s, want %d:\n%s", got, line, want, log)
		}
	}
}

// lockedBuffer may be written to and read at the same time.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
