package outboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
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
	// it nothing is tested that needs it: brokers that do not deliver again by themselves have none.
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

// TestSubscriber checks that a broker's subscriber keeps what subscribe.Subscriber promises. Open is
// called for every test, with the time after which the broker shall deliver again what was not
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
	soon = time.Second // for tests in which a message comes again by itself
	late = time.Minute // for those in which it does not
)

var subscriberTests = map[string]struct {
	ackWait time.Duration
	run     func(*subscribing)
}{
	"what is handled is acknowledged":                   {late, testAcknowledged},
	"as many handlers run as are allowed":               {late, testConcurrency},
	"what fails comes again":                            {late, testComesAgain},
	"the events of a key stay in order while one fails": {late, testOrderWhileRetried},
	"a key that fails does not stop the others":         {late, testOthersGoOn},
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

// subscribing is one test's broker, and shorthands that fail the test.
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

// member is a subscriber at work.
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
	for deadline := time.Now().Add(patience); !ok(); <-tick.C {
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
	case <-time.After(patience):
		t.Fatal("nothing came in time")
	}
}

// body returns a message whose payload is no secret.
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
		s.Errorf("the log has what nobody needs:\n%s", m.log)
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

// testOthersGoOn has a key that comes again after weeks, and not before the others are handled.
func testOthersGoOn(s *subscribing) {
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

// testExtended has a handler that takes longer than two AckWaits, and an event that waits behind it.
func testExtended(s *subscribing) {
	if s.Extensions == nil {
		s.Skip("the broker does not deliver again by itself")
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

// testOtherVersion publishes one fact in several versions, of which the consumer knows one. That one
// may stand behind another that waits. What follows of the key waits for all of them.
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

// testSharedWork lets no handler go on before both members have something to do.
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
