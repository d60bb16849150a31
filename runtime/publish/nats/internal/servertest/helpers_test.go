package servertest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/outboxgen/outboxgen/internal/testenv/natsenv"
	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	outboxnats "github.com/outboxgen/outboxgen/runtime/publish/nats"
)

// patience ends a test that hangs. It is no measure of anything.
const patience = 3 * time.Minute

// world is a server with a stream ORDERS on the subjects orders.>.
type world struct {
	server *natsenv.Server
	nc     *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream
}

func newWorld(t testing.TB, changes ...func(*jetstream.StreamConfig)) *world {
	t.Helper()
	w := &world{server: natsenv.New(t)}
	w.nc, w.js = w.connect(t)
	cfg := jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}}
	for _, change := range changes {
		change(&cfg)
	}
	var err error
	w.stream, err = w.js.CreateStream(t.Context(), cfg)
	check(t, err)
	return w
}

// connect returns another connection, which lasts until the test ends.
func (w *world) connect(t testing.TB) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := nats.Connect(w.server.URL(),
		nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	check(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(3*time.Minute))
	check(t, err)
	return nc, js
}

func (w *world) consumer(t *testing.T, cfg jetstream.ConsumerConfig) jetstream.Consumer {
	t.Helper()
	if cfg.Durable == "" {
		cfg.Durable = "stock"
	}
	c, err := w.stream.CreateOrUpdateConsumer(t.Context(), cfg)
	check(t, err)
	return c
}

func (w *world) publish(t *testing.T, messages ...*outbox.Message) {
	t.Helper()
	p := publisher(t, w.js)
	for _, m := range messages {
		check(t, p.Publish(t.Context(), m))
	}
}

func publisher(t testing.TB, js jetstream.JetStream) *outboxnats.Publisher {
	t.Helper()
	p, err := outboxnats.NewPublisher(js, outboxnats.PublisherConfig{})
	check(t, err)
	return p
}

// unsettled returns how many messages the consumer has still to get or to acknowledge.
func unsettled(t *testing.T, c jetstream.Consumer) int {
	t.Helper()
	info, err := c.Info(t.Context())
	check(t, err)
	return int(info.NumPending) + info.NumAckPending
}

func event(key, body string) *outbox.Message {
	return &outbox.Message{
		ID: uuid.New(), Type: "order.placed", Version: 1, Source: "shop/orders",
		Topic: "orders.placed", Key: key, Payload: []byte(body), ContentType: "application/json",
		CreatedAt: time.Now().UTC(),
	}
}

// handlerFunc makes a handler of a function.
type handlerFunc func(ctx context.Context, m *outbox.Message) error

func (f handlerFunc) Handle(ctx context.Context, m *outbox.Message) (inbox.Outcome, error) {
	if err := f(ctx, m); err != nil {
		return inbox.OutcomeFailed, err
	}
	return inbox.OutcomeApplied, nil
}

// running is a subscriber at work.
type running struct {
	*outboxnats.Subscriber
	cancel context.CancelFunc
	done   chan error
}

// start runs a subscriber until the test ends, or stop is called.
func start(
	t *testing.T, c jetstream.Consumer, cfg outboxnats.SubscriberConfig, h handlerFunc,
) *running {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if cfg.MaxRetryDelay == 0 {
		cfg.MinRetryDelay, cfg.MaxRetryDelay = 20*time.Millisecond, 100*time.Millisecond
	}
	s, err := outboxnats.NewSubscriber(c, h, cfg)
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Subscriber: s, cancel: cancel, done: make(chan error, 1)}
	go func() { r.done <- s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-r.done })
	return r
}

func (r *running) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	err := receive(t, r.done)
	r.done <- err
	check(t, err)
}

// record is a list that handlers add to.
type record struct {
	mu    sync.Mutex
	items []string
}

func (r *record) add(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.items = append(r.items, s)
}

func (r *record) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.items...)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func receive[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case x := <-ch:
		return x
	case <-time.After(patience):
		t.Fatal("nothing came in time")
		panic("unreachable")
	}
}

// answers subscribes to what is told to the broker about a message, by its number in the stream.
func (w *world) answers(t *testing.T, sequence int) *nats.Subscription {
	t.Helper()
	s, err := w.nc.SubscribeSync(fmt.Sprintf("$JS.ACK.ORDERS.stock.*.%d.>", sequence))
	check(t, err)
	return s
}

// heartbeats waits until the broker was told n times that a message is in progress. That happens
// three times per AckWait.
func heartbeats(t *testing.T, answers *nats.Subscription, n int) {
	t.Helper()
	for n > 0 {
		answer, err := answers.NextMsg(patience)
		check(t, err)
		if strings.HasPrefix(string(answer.Data), "+WPI") {
			n--
		}
	}
}

// inOrder fails unless the first event was handled again, after it had failed, before the second
// one was handled at all. More deliveries than that do no harm: a broker that hears nothing in time
// delivers again.
func inOrder(t *testing.T, calls []string) {
	t.Helper()
	if second := slices.Index(calls, "second"); second < 2 {
		t.Errorf("handled %q, want the first twice before the second", calls)
	}
}

// eventually polls until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}
