package servertest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outboxtest/conformance"
	outboxnats "github.com/outboxgen/outboxgen/runtime/publish/nats"
)

func TestPublisher(t *testing.T) { conform(t, single) }

func TestPublisherInBatches(t *testing.T) { conform(t, inBatches) }

func conform(t *testing.T, by way) {
	conformance.TestPublisher(t, func(t *testing.T) conformance.PublisherHarness {
		w := newWorld(t, onTopic)
		received := make(chan outbox.Message)
		c := w.consumer(t, jetstream.ConsumerConfig{})
		start(t, c, outboxnats.SubscriberConfig{DrainTimeout: 1},
			func(ctx context.Context, m *outbox.Message) error {
				select {
				case received <- *m:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
		return conformance.PublisherHarness{
			Publisher: by(publisher(t, w.js)),
			Receive: func(ctx context.Context, n int) (messages []outbox.Message, err error) {
				for range n {
					select {
					case m := <-received:
						messages = append(messages, m)
					case <-ctx.Done():
						return messages, ctx.Err()
					}
				}
				return messages, nil
			},
			Stop:     w.server.Stop,
			Restart:  func() { check(t, w.server.Restart()) },
			MaxBytes: int(w.nc.MaxPayload()),
		}
	})
}

func TestAttributesAreHeadersOfABinaryCloudEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := event(`a b"%ü`, `{}`)
	m.CreatedAt = time.Date(2026, 11, 30, 12, 0, 0, 0, time.FixedZone("", 3600))
	m.CausationID, m.Headers = uuid.New(), map[string]string{"tenant": "größe"}
	w.publish(t, m)
	raw, err := w.stream.GetMsg(t.Context(), 1)
	check(t, err)
	want := nats.Header{
		"ce-specversion": {"1.0"}, "ce-id": {m.ID.String()}, "ce-type": {"order.placed@1"},
		"ce-source": {"shop/orders"}, "ce-datacontenttype": {"application/json"},
		"ce-partitionkey": {"a%20b%22%25%C3%BC"}, "ce-time": {"2026-11-30T11:00:00Z"},
		"ce-causationid": {m.CausationID.String()}, "tenant": {"größe"},
		"Nats-Msg-Id": {m.ID.String() + "/order.placed@1"},
	}
	if diff := cmp.Diff(want, raw.Header); diff != "" {
		t.Error(diff)
	}
	if raw.Subject != "orders.placed" || string(raw.Data) != "{}" {
		t.Errorf("got %s on %s", raw.Data, raw.Subject)
	}
}

func TestASecondPublishOfAnEventIsDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := event("k", `{}`)
	w.publish(t, m, m, event("k", `{}`))
	info, err := w.stream.Info(t.Context())
	check(t, err)
	if info.State.Msgs != 2 {
		t.Errorf("the stream has %d messages, want 2", info.State.Msgs)
	}
}

func TestAPublishUnderWayEndsWhenTheBrokerGoes(t *testing.T) {
	eachWay(t, testAPublishUnderWayEndsWhenTheBrokerGoes)
}

func testAPublishUnderWayEndsWhenTheBrokerGoes(t *testing.T, by way) {
	w := newWorld(t)
	// Nobody but this subscription listens, and it never answers.
	asked := make(chan *nats.Msg, 1)
	_, err := w.nc.ChanSubscribe("silent", asked)
	check(t, err)
	m := event("k", `{}`)
	m.Topic = "silent"
	result := make(chan error, 1)
	go func() { result <- by(publisher(t, w.js)).Publish(context.Background(), m) }()
	receive(t, asked)
	w.server.Stop()
	if err := receive(t, result); !errors.Is(err, outbox.ErrUnreachable) {
		t.Errorf("got %v, want ErrUnreachable", err)
	}
}

func TestAClosedConnectionIsUnreachable(t *testing.T) { eachWay(t, testAClosedConnectionIsUnreachable) }

func testAClosedConnectionIsUnreachable(t *testing.T, by way) {
	w := newWorld(t)
	w.nc.Close()
	err := by(publisher(t, w.js)).Publish(t.Context(), event("k", `{}`))
	if !errors.Is(err, outbox.ErrUnreachable) || !errors.Is(err, outbox.ErrPublisherClosed) {
		t.Errorf("got %v, want ErrUnreachable and ErrPublisherClosed", err)
	}
	if err == nil || !strings.Contains(err.Error(), "closed for good") ||
		!strings.Contains(err.Error(), "MaxReconnects(-1)") {
		t.Errorf("got %v, want how to mend it", err)
	}
}

// TestWhatTheUserMayNotPublishIsToldAtOnce is about something that the server says beside the
// connection: the publish itself gets no answer.
func TestWhatTheUserMayNotPublishIsToldAtOnce(t *testing.T) {
	eachWay(t, testWhatTheUserMayNotPublishIsToldAtOnce)
}

func testWhatTheUserMayNotPublishIsToldAtOnce(t *testing.T, by way) {
	own := make(chan error, 100)
	js := connectAs(t,
		&server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"orders.secret.>"}}},
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { own <- err }))
	p := by(publisher(t, js))
	var running sync.WaitGroup
	for i := range 20 {
		running.Go(func() {
			m := event("secret-key", `{"secret":true}`)
			m.Topic = fmt.Sprint("orders.secret.", i%3)
			err := p.Publish(context.Background(), m) // which would never end by itself
			want := fmt.Sprintf("not permitted to publish to subject %q", m.Topic)
			if !errors.Is(err, outbox.ErrUnreachable) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want ErrUnreachable and: %s", err, want)
			}
			if strings.Contains(err.Error(), "secret-key") ||
				strings.Contains(err.Error(), "true") {
				t.Errorf("the error tells the key or the payload: %v", err)
			}
			if err := p.Publish(t.Context(), event("k", `{}`)); err != nil {
				t.Errorf("what is permitted: %v", err)
			}
		})
	}
	running.Wait()
	if err := receive(t, own); !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("the connection's own handler got %v", err)
	}
}

// TestWhoMayNotHearAnswersIsToldWhy cannot know that each publish has failed: some stream may have
// kept it.
func TestWhoMayNotHearAnswersIsToldWhy(t *testing.T) { eachWay(t, testWhoMayNotHearAnswersIsToldWhy) }

func testWhoMayNotHearAnswersIsToldWhy(t *testing.T, by way) {
	js := connectAs(t,
		&server.Permissions{Subscribe: &server.SubjectPermission{Deny: []string{"_INBOX.>"}}})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := by(publisher(t, js)).Publish(ctx, event("k", `{}`))
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, outbox.ErrUnreachable) {
		t.Errorf("got %v, want a time-out", err)
	}
	if err == nil ||
		!strings.Contains(err.Error(), `Permissions Violation for Subscription to "_INBOX`) {
		t.Errorf("got %v, want the reason", err)
	}
}

// connectAs returns a connection of a user with permissions, to a server with a stream on orders.>.
func connectAs(t *testing.T, may *server.Permissions, opts ...nats.Option) jetstream.JetStream {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, JetStream: true,
		StoreDir: t.TempDir(),
		Users: []*server.User{{Username: "owner", Password: "owner"},
			{Username: "relay", Password: "relay", Permissions: may}},
	})
	check(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server is not ready")
	}
	as := func(name string, opts ...nats.Option) jetstream.JetStream {
		nc, err := nats.Connect(s.ClientURL(), append(opts, nats.UserInfo(name, name))...)
		check(t, err)
		t.Cleanup(nc.Close)
		js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(3*time.Minute))
		check(t, err)
		return js
	}
	_, err = as("owner").CreateStream(t.Context(),
		jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
	check(t, err)
	return as("relay", opts...)
}

func TestTheEndOfTheContextIsReported(t *testing.T) { eachWay(t, testTheEndOfTheContextIsReported) }

func testTheEndOfTheContextIsReported(t *testing.T, by way) {
	w := newWorld(t)
	_, err := w.nc.SubscribeSync("silent")
	check(t, err)
	m := event("k", `{}`)
	m.Topic = "silent"
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = by(publisher(t, w.js)).Publish(ctx, m)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, outbox.ErrUnreachable) ||
		errors.Is(err, outbox.ErrPermanent) {
		t.Errorf("got %v, want the context's error alone", err)
	}
}

func TestWhatTheBrokerDoesNotTake(t *testing.T) { eachWay(t, testWhatTheBrokerDoesNotTake) }

func testWhatTheBrokerDoesNotTake(t *testing.T, by way) {
	w := newWorld(t, func(c *jetstream.StreamConfig) {
		c.MaxMsgSize, c.MaxMsgs, c.Discard = 100_000, 1, jetstream.DiscardNew
	})
	w.publish(t, event("k", `{}`))
	for name, c := range map[string]struct {
		change func(*outbox.Message)
		kind   error
		want   string
	}{
		"larger than the stream allows": {
			func(m *outbox.Message) { m.Payload = make([]byte, 200_000) },
			outbox.ErrPermanent, "message size exceeds maximum allowed",
		},
		"no subject": {
			func(m *outbox.Message) { m.Topic = "" },
			outbox.ErrPermanent, "invalid subject",
		},
		"a subject with a space": {
			func(m *outbox.Message) { m.Topic = "orders placed" },
			outbox.ErrPermanent, "invalid subject",
		},
		"orders to the server": {
			func(m *outbox.Message) { m.Headers = map[string]string{"nats-rollup": "all"} },
			outbox.ErrPermanent, "a header may not be named",
		},
		"no stream": {
			func(m *outbox.Message) { m.Topic = "returns.made" },
			outbox.ErrUnreachable, "no stream listens to the subject",
		},
		"the stream is full": {
			func(*outbox.Message) {}, outbox.ErrUnreachable, "maximum messages exceeded",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := event("secret-key", `{"secret":true}`)
			c.change(m)
			err := by(publisher(t, w.js)).Publish(t.Context(), m)
			if !errors.Is(err, c.kind) ||
				errors.Is(err, outbox.ErrUnreachable) && errors.Is(err, outbox.ErrPermanent) {
				t.Fatalf("got %v, want an error of this kind alone: %v", err, c.kind)
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestASilentSubjectIsTriedAgain counts what the client sends: every attempt, and the question
// whether there is a stream.
func TestASilentSubjectIsTriedAgain(t *testing.T) { eachWay(t, testASilentSubjectIsTriedAgain) }

func testASilentSubjectIsTriedAgain(t *testing.T, by way) {
	w := newWorld(t)
	m := event("k", `{}`)
	m.Topic = "returns.made"
	for attempts, want := range map[int]uint64{0: 3, 1: 1, 5: 5} {
		nc, js := w.connect(t)
		p, err := outboxnats.NewPublisher(js, outboxnats.PublisherConfig{
			MaxAttempts: attempts, RetryDelay: time.Millisecond,
		})
		check(t, err)
		before := nc.Stats().OutMsgs
		if err := by(p).Publish(t.Context(), m); !errors.Is(err, outbox.ErrUnreachable) {
			t.Errorf("got %v, want ErrUnreachable", err)
		}
		if got := nc.Stats().OutMsgs - before - 1; got != want {
			t.Errorf("MaxAttempts %d: sent %d times, want %d", attempts, got, want)
		}
	}
}

func TestPublishersThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for field, cfg := range map[string]outboxnats.PublisherConfig{
		"MaxAttempts": {MaxAttempts: -1}, "RetryDelay": {RetryDelay: -1},
	} {
		_, err := outboxnats.NewPublisher(w.js, cfg)
		if err == nil || !strings.Contains(err.Error(), field+" is -1") {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

func TestAServerWithoutAnswersFromJetStreamIsUnreachable(t *testing.T) {
	eachWay(t, testAServerWithoutAnswersFromJetStreamIsUnreachable)
}

func testAServerWithoutAnswersFromJetStreamIsUnreachable(t *testing.T, by way) {
	w := newWorld(t)
	// The API of a domain that does not exist has no responders, as that of a server which is
	// starting.
	js, err := jetstream.NewWithDomain(w.nc, "nowhere")
	check(t, err)
	m := event("k", `{}`)
	m.Topic = "returns.made"
	err = by(publisher(t, js)).Publish(t.Context(), m)
	if !errors.Is(err, outbox.ErrUnreachable) || errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("got %v, want ErrUnreachable, and nothing said of the streams of another domain", err)
	}
}

// TestAnAnswerThatIsNoStreamsIsNoAcknowledgement has somebody without a stream reply to what is
// published.
func TestAnAnswerThatIsNoStreamsIsNoAcknowledgement(t *testing.T) {
	eachWay(t, testAnAnswerThatIsNoStreamsIsNoAcknowledgement)
}

func testAnAnswerThatIsNoStreamsIsNoAcknowledgement(t *testing.T, by way) {
	w := newWorld(t)
	_, err := w.nc.Subscribe("echo", func(msg *nats.Msg) { _ = msg.Respond(msg.Data) })
	check(t, err)
	for _, body := range []string{
		`{}`, `null`, ``, `OK`, `{"stream":"news"}`, `{"stream":"news","seq":0}`,
	} {
		m := event("k", body)
		m.Topic = "echo"
		err := by(publisher(t, w.js)).Publish(t.Context(), m)
		if err == nil || errors.Is(err, outbox.ErrUnreachable) ||
			errors.Is(err, outbox.ErrPermanent) {
			t.Errorf("%q: got %v, want a refusal", body, err)
		}
	}
}

func inMemory(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }

func TestManyPublishesAtOnceAreAllAcknowledged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory)
	p := publisher(t, w.js)
	const n = 4096
	var running sync.WaitGroup
	for range n {
		running.Go(func() {
			if err := p.Publish(t.Context(), event("k", `{}`)); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	info, err := w.stream.Info(t.Context())
	check(t, err)
	if info.State.Msgs != n {
		t.Errorf("the stream has %d messages, want %d", info.State.Msgs, n)
	}
}

// BenchmarkPublish shows whether publishes that are under way make the others dearer.
func BenchmarkPublish(b *testing.B) {
	for _, atOnce := range []int{16, 4096} {
		b.Run(fmt.Sprint(atOnce, " at once"), func(b *testing.B) {
			p := publisher(b, newWorld(b, inMemory).js)
			b.SetParallelism(atOnce / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := p.Publish(b.Context(), event("k", `{}`)); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
