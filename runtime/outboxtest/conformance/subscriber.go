package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/payload"
	"github.com/outboxgen/outboxgen/runtime/subscribe"
)

// SubscriberHarness is a broker of its own that is empty, with one consumer of what is published on
// Topic. Any number of members subscribe to the consumer.
type SubscriberHarness struct {
	Publisher outbox.Publisher
	// PublishForeign publishes a message on Topic that is no event of an outbox, and
	// PublishMalformed one that is, and whose attributes cannot be read.
	PublishForeign, PublishMalformed func(ctx context.Context) error
	// Subscribe returns a new member, with a connection of its own.
	Subscribe func(handler inbox.Handler, config subscribe.Config) (Member, error)
	// Unsettled returns how many messages the consumer has still to get or to acknowledge.
	Unsettled func(ctx context.Context) (int, error)
	// Extensions returns how many times the broker was told that a message is in progress. Without
	// it nothing is tested that needs it: brokers that do not deliver again by themselves have
	// none.
	Extensions func() int
	// Stop ends the broker, which keeps its messages, and Restart brings it back.
	Stop, Restart func()
}

// Member is a subscriber of the consumer. *subscribe.Subscriber has both methods.
type Member struct {
	Subscriber interface {
		Run(ctx context.Context) error
		Stats() subscribe.Stats
	}
	// Crash cuts the member off from the broker, as the end of its process would.
	Crash func()
}

// TestSubscriber checks that a broker's subscriber keeps what subscribe.Subscriber promises. Open
// is called for every test, with the time after which the broker shall deliver again what was not
// answered, and may register clean-ups with t.
func TestSubscriber(
	t *testing.T, open func(t *testing.T, ackWait time.Duration) SubscriberHarness,
) {
	for name, test := range subscriberTests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.run(&subscribing{T: t, SubscriberHarness: open(t, test.ackWait)})
		})
	}
}

const (
	soon = time.Second // for tests in which the broker delivers a message again
	late = time.Minute // for tests in which it does not
)

var subscriberTests = map[string]struct {
	ackWait time.Duration
	run     func(*subscribing)
}{
	"what is handled is acknowledged":                   {late, testAcknowledged},
	"as many handlers run as are allowed":               {late, testConcurrency},
	"what fails comes again":                            {late, testComesAgain},
	"the events of a key stay in order while one fails": {late, testOrderWhileRetried},
	"a key that fails does not stop the others":         {late, testOthersContinue},
	"an event comes again after a crash":                {soon, testCrash},
	"what is extended does not come again":              {5 * time.Second, testExtended},
	"a handler that hangs gives its event back":         {soon, testHangs},
	"what cannot be read stops nothing":                 {late, testUnreadable},
	"an unknown version goes to a member that knows it": {late, testUnknownVersion},
	"another version of an event does not wait":         {time.Hour, testOtherVersion},
	"each delivery counts as what it was":               {late, testCounts},
	"the end finishes what runs and releases the rest":  {time.Hour, testGracefulEnd},
	"the end cancels handlers that do not end":          {late, testCancelledEnd},
	"two members share the work":                        {late, testSharedWork},
	"an outage in the middle loses nothing":             {soon, testBrokerOutage},
}

// subscribing has one test's broker, with helpers that fail the test.
type subscribing struct {
	*testing.T
	SubscriberHarness
}

// handlerFunc is a handler that says what became of a delivery.
type handlerFunc func(ctx context.Context, m *outbox.Message) (inbox.Outcome, error)

func (f handlerFunc) Handle(ctx context.Context, m *outbox.Message) (inbox.Outcome, error) {
	return f(ctx, m)
}

// applying makes a handler of a function that fails or applies.
func applying(f func(ctx context.Context, m *outbox.Message) error) handlerFunc {
	return func(ctx context.Context, m *outbox.Message) (inbox.Outcome, error) {
		if err := f(ctx, m); err != nil {
			return inbox.OutcomeFailed, err
		}
		return inbox.OutcomeApplied, nil
	}
}

// member is a running subscriber.
type member struct {
	Member
	log    *lockedBuffer
	cancel context.CancelFunc
	done   chan struct{}
	err    error // of Run, once done is closed
}

// subscribe runs a subscriber until the test ends. Its log must have no key and no payload.
func (s *subscribing) subscribe(h inbox.Handler, config subscribe.Config) *member {
	s.Helper()
	m := &member{log: &lockedBuffer{}, done: make(chan struct{})}
	config.Logger = slog.New(slog.NewTextHandler(m.log,
		&slog.HandlerOptions{Level: slog.LevelInfo}))
	if config.MaxRetryDelay == 0 {
		config.MinRetryDelay, config.MaxRetryDelay = 20*time.Millisecond, 100*time.Millisecond
	}
	var err error
	if m.Member, err = s.Subscribe(h, config); err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	m.cancel = cancel
	go func() {
		defer close(m.done)
		m.err = m.Subscriber.Run(ctx)
	}()
	s.Cleanup(func() {
		cancel()
		<-m.done
		for _, secret := range []string{secretKey, secretPayload} {
			if strings.Contains(m.log.String(), secret) {
				s.Errorf("the log has a key or a payload:\n%s", m.log)
			}
		}
	})
	return m
}

// end ends a member and expects that nothing went wrong.
func (s *subscribing) end(m *member) {
	s.Helper()
	m.cancel()
	wait(s, m.done)
	if m.err != nil {
		s.Errorf("Run: %v", m.err)
	}
}

func (s *subscribing) publish(messages ...*outbox.Message) {
	s.Helper()
	for _, m := range messages {
		if err := s.Publisher.Publish(s.Context(), m); err != nil {
			s.Fatalf("publish: %v", err)
		}
	}
}

// eventually polls until ok.
func (s *subscribing) eventually(what string, ok func() bool) {
	s.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(hangTimeout); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			s.Fatalf("not in time: %s", what)
		}
	}
}

// untilSettled waits until so many messages are left to be handled.
func (s *subscribing) untilSettled(left int) {
	s.Helper()
	s.eventually(fmt.Sprintf("all but %d acknowledged", left), func() bool {
		n, err := s.Unsettled(s.Context())
		return err == nil && n == left
	})
}

func (s *subscribing) expect(m *member, want subscribe.Stats) {
	s.Helper()
	if got := m.Subscriber.Stats(); got != want {
		s.Errorf("got %+v, want %+v", got, want)
	}
}

func wait[T any](t testing.TB, ch <-chan T) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(hangTimeout):
		t.Fatal("nothing came in time")
	}
}

// body returns a message with a payload that may appear in logs.
func body(key, payload string) *outbox.Message {
	m := message(key)
	m.Payload = []byte(payload)
	return m
}

func testAcknowledged(s *subscribing) {
	const n = 200
	for i := range n {
		s.publish(message(fmt.Sprint(secretKey, i%7)), message(""))
	}
	var handled atomic.Int64
	m := s.subscribe(applying(func(context.Context, *outbox.Message) error {
		handled.Add(1)
		return nil
	}), subscribe.Config{})
	s.untilSettled(0)
	s.end(m)
	if handled.Load() != 2*n {
		s.Errorf("handled %d deliveries, want each of %d messages once", handled.Load(), 2*n)
	}
	s.expect(m, subscribe.Stats{Acknowledged: 2 * n})
}

func testConcurrency(s *subscribing) {
	for i := range 60 {
		s.publish(message(fmt.Sprint(i)))
	}
	var now, most atomic.Int64
	gate := make(chan struct{})
	s.subscribe(applying(func(context.Context, *outbox.Message) error {
		n := now.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		<-gate
		now.Add(-1)
		return nil
	}), subscribe.Config{Concurrency: 4})
	opened := sync.OnceFunc(func() { close(gate) })
	s.Cleanup(opened) // if the test fails before
	s.eventually("four handlers at once", func() bool { return now.Load() == 4 })
	opened()
	s.untilSettled(0)
	if most.Load() != 4 {
		s.Errorf("%d handlers at once, want 4", most.Load())
	}
}

// testCounts has one event of each kind delivered.
func testCounts(s *subscribing) {
	undecodable := &payload.Error{Path: "order_id", Problem: "missing"}
	handlers := map[string]handlerFunc{
		"applied":   always(inbox.OutcomeApplied),
		"duplicate": always(inbox.OutcomeDuplicate),
		"ignored":   always(inbox.OutcomeIgnored),
		"failed":    failingOnce(errors.New("no stock")),
		"in.flight": failingOnce(inbox.ErrInFlight),
		"unknown":   failingOnce(inbox.ErrUnknownVersion),
		"malformed": failingOnce(undecodable),
		// An event of its own was invalid.
		"emits": failingOnce(&outbox.EventError{Type: "other@1", Err: undecodable}),
	}
	for name := range handlers {
		m := message("")
		m.Type = name
		s.publish(m)
	}
	m := s.subscribe(handlerFunc(
		func(ctx context.Context, m *outbox.Message) (inbox.Outcome, error) {
			return handlers[m.Type](ctx, m)
		}), subscribe.Config{})
	s.untilSettled(0)
	s.end(m)
	s.expect(m, subscribe.Stats{
		Acknowledged: 7, Duplicates: 1, Ignored: 1, Retried: 3, UnknownVersion: 1, Malformed: 1,
	})
}

func always(outcome inbox.Outcome) handlerFunc {
	return func(context.Context, *outbox.Message) (inbox.Outcome, error) { return outcome, nil }
}

// failingOnce fails with err, and then applies.
func failingOnce(err error) handlerFunc {
	var calls atomic.Int64
	return applying(func(context.Context, *outbox.Message) error {
		if calls.Add(1) == 1 {
			return &inbox.HandlerError{Consumer: consumer, Err: err}
		}
		return nil
	})
}

// testSharedWork blocks the handlers until both members have a delivery.
func testSharedWork(s *subscribing) {
	const n = 40
	for i := range n {
		s.publish(message(fmt.Sprint(i)))
	}
	both := make(chan struct{})
	var busy atomic.Int64
	var members []*member
	for range 2 {
		begin := sync.OnceFunc(func() {
			if busy.Add(1) == 2 {
				close(both)
			}
		})
		members = append(members, s.subscribe(
			applying(func(ctx context.Context, _ *outbox.Message) error {
				begin()
				select {
				case <-both:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}), subscribe.Config{Concurrency: 1, DrainTimeout: time.Millisecond}))
	}
	wait(s, both)
	s.untilSettled(0)
	var acknowledged int64
	for _, m := range members {
		acknowledged += m.Subscriber.Stats().Acknowledged
	}
	if acknowledged != n {
		s.Errorf("%d deliveries were acknowledged, want each of %d messages once", acknowledged, n)
	}
}

// record is a list that handlers add to.
type record struct {
	mu    sync.Mutex
	items []string
}

// add returns how many items there are.
func (r *record) add(item string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.items = append(r.items, item)
	return len(r.items)
}

func (r *record) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.items)
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
