package servertest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outboxtest/conformance"
	outboxnats "github.com/outboxgen/outboxgen/runtime/publish/nats"
	"github.com/outboxgen/outboxgen/runtime/subscribe"
)

func TestSubscriber(t *testing.T) {
	conformance.TestSubscriber(t,
		func(t *testing.T, ackWait time.Duration) conformance.SubscriberHarness {
			w := newWorld(t, onTopic)
			c := w.consumer(t, jetstream.ConsumerConfig{AckWait: ackWait})
			return conformance.SubscriberHarness{
				Publisher: publisher(t, w.js),
				PublishForeign: func(ctx context.Context) error {
					_, err := w.js.Publish(ctx, conformance.Topic, []byte(`{"type":"com.example"}`))
					return err
				},
				PublishMalformed: func(ctx context.Context) error {
					_, err := w.js.PublishMsg(ctx, &nats.Msg{
						Subject: conformance.Topic, Header: nats.Header{
							"ce-specversion": {"1.0"}, "ce-type": {"thing.happened@1"},
							"ce-id": {"17"},
						},
					})
					return err
				},
				Subscribe: func(
					h inbox.Handler, cfg outboxnats.SubscriberConfig,
				) (conformance.Member, error) {
					nc, js := w.connect(t)
					own, err := js.Consumer(t.Context(), "ORDERS", "stock")
					check(t, err)
					s, err := outboxnats.NewSubscriber(own, h, cfg)
					return conformance.Member{Subscriber: s, Crash: nc.Close}, err
				},
				Unsettled: func(ctx context.Context) (int, error) {
					info, err := c.Info(ctx)
					if err != nil {
						return 0, err
					}
					return int(info.NumPending) + info.NumAckPending, nil
				},
				Extensions: w.extensions(t),
				Stop:       w.server.Stop,
				Restart:    func() { check(t, w.server.Restart()) },
			}
		})
}

// onTopic has the stream keep what the suites publish.
func onTopic(c *jetstream.StreamConfig) { c.Subjects = []string{conformance.Topic} }

// extensions counts the answers that say that a message is in progress.
func (w *world) extensions(t *testing.T) func() int {
	t.Helper()
	var n atomic.Int64
	_, err := w.nc.Subscribe("$JS.ACK.ORDERS.stock.>", func(msg *nats.Msg) {
		if strings.HasPrefix(string(msg.Data), "+WPI") {
			n.Add(1)
		}
	})
	check(t, err)
	return func() int { return int(n.Load()) }
}

func TestSuccessorsGoOnWhenTheirPredecessorDoesNotComeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.consumer(t, jetstream.ConsumerConfig{AckWait: time.Second})
	w.publish(t, event("k", `first`), event("k", `second`))
	var deleted, handled sync.Once // either may be delivered again while the machine is busy
	done := make(chan struct{})
	start(t, c, outboxnats.SubscriberConfig{}, func(_ context.Context, m *outbox.Message) error {
		if string(m.Payload) == "second" {
			handled.Do(func() { close(done) })
			return nil
		}
		deleted.Do(func() { // as if another subscriber had it now
			if err := w.stream.DeleteMsg(context.Background(), 1); err != nil {
				t.Error(err)
			}
		})
		return errors.New("failed once")
	})
	receive(t, done)
}

func TestRunEndsWithTheConsumerOrTheConnection(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *world){
		"consumer deleted": func(t *testing.T, w *world) {
			check(t, w.stream.DeleteConsumer(t.Context(), "stock"))
		},
		"connection closed": func(_ *testing.T, w *world) { w.nc.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.publish(t, event("k", `{}`))
			got := make(chan struct{}, 1)
			r := start(t, w.consumer(t, jetstream.ConsumerConfig{}), outboxnats.SubscriberConfig{},
				func(context.Context, *outbox.Message) error { got <- struct{}{}; return nil })
			receive(t, got)
			end(t, w)
			err := receive(t, r.done)
			r.done <- err
			if !errors.Is(err, subscribe.ErrConsumerGone) {
				t.Errorf("Run returned %v, want ErrConsumerGone", err)
			}
		})
	}
}

// TestHeadersOfOtherClients has names in other cases, and a value in quotes.
func TestHeadersOfOtherClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	_, err := w.js.PublishMsg(t.Context(), &nats.Msg{
		Subject: "orders.placed", Header: nats.Header{
			"CE-SpecVersion": {"1.0"}, "Ce-Id": {`"0198c0de-1111-7abc-8def-0123456789ab"`},
			"ce-type": {"order.placed@1"}, "Ce-PartitionKey": {"upper"},
			"ce-partitionkey": {"lower", "second"}, "TraceParent": {traceparent},
		},
	})
	check(t, err)
	got := make(chan *outbox.Message, 1)
	start(t, w.consumer(t, jetstream.ConsumerConfig{}), outboxnats.SubscriberConfig{},
		func(_ context.Context, m *outbox.Message) error { got <- m; return nil })
	m := receive(t, got)
	want := map[string]string{outbox.HeaderTraceparent: traceparent}
	if diff := cmp.Diff(want, m.Headers); diff != "" || m.Key != "lower" ||
		m.TypeName() != "order.placed@1" || m.Topic != "orders.placed" {
		t.Errorf("got %v on %s with key %q and headers %s", m, m.Topic, m.Key, diff)
	}
}

// TestEveryVersionOfAFactIsKept: the stream must not take one for a duplicate of the other, and
// drops a real one.
func TestEveryVersionOfAFactIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m1 := event("k", "{}")
	m2 := *m1
	m2.Version = 2
	w.publish(t, m1, &m2, m1, &m2)
	info, err := w.stream.Info(t.Context())
	check(t, err)
	if info.State.Msgs != 2 {
		t.Errorf("the stream keeps %d messages, want each version once", info.State.Msgs)
	}
}

func TestConsumersThatWouldLoseMessagesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := handlerFunc(func(context.Context, *outbox.Message) error { return nil })
	for name, cfg := range map[string]jetstream.ConsumerConfig{
		"no acknowledgement":  {Durable: "none", AckPolicy: jetstream.AckNonePolicy},
		"all acknowledged":    {Durable: "all", AckPolicy: jetstream.AckAllPolicy},
		"limit on deliveries": {Durable: "limit", MaxDeliver: 5},
	} {
		_, err := outboxnats.NewSubscriber(w.consumer(t, cfg), h, outboxnats.SubscriberConfig{})
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	ok := w.consumer(t, jetstream.ConsumerConfig{
		BackOff: []time.Duration{time.Second}, MaxDeliver: -1,
	})
	_, err := outboxnats.NewSubscriber(ok, h, outboxnats.SubscriberConfig{Concurrency: -1})
	if err == nil || !strings.Contains(err.Error(), "Concurrency is -1") {
		t.Errorf("a configuration that cannot be: got %v", err)
	}
}
