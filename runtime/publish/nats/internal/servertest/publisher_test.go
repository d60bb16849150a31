package servertest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	outboxnats "github.com/outboxgen/outboxgen/runtime/publish/nats"
)

func TestEveryAttributeArrives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	minimal := event("", `{}`)
	minimal.CreatedAt = time.Time{}
	minimal.Source, minimal.ContentType = "", ""
	minimal.Headers = map[string]string{}
	full := event(`Schlüssel "1" 100% 😀`, `{"näme":"\u0000"}`)
	full.CausationID = uuid.New()
	full.CreatedAt = time.Date(2026, 11, 30, 12, 0, 0, 123_456_000, time.UTC)
	full.Headers = map[string]string{outbox.HeaderTraceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "Tenant": "Käse & Co"}
	w.publish(t, minimal, full)

	got := make(chan *outbox.Message, 2)
	subscribe(t, w.consumer(t, jetstream.ConsumerConfig{}), outboxnats.SubscriberConfig{Concurrency: 1},
		func(_ context.Context, m *outbox.Message) error { got <- m; return nil })
	want := map[uuid.UUID]*outbox.Message{minimal.ID: minimal, full.ID: full}
	for range want {
		m := receive(t, got)
		if diff := cmp.Diff(want[m.ID], m); diff != "" {
			t.Error(diff)
		}
	}
}

func TestAttributesAreHeadersOfABinaryCloudEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := event(`a b"%ü`, `{}`)
	m.CreatedAt = time.Date(2026, 11, 30, 12, 0, 0, 0, time.FixedZone("", 3600))
	w.publish(t, m)
	raw, err := w.stream.GetMsg(t.Context(), 1)
	check(t, err)
	want := nats.Header{
		"ce-specversion": {"1.0"}, "ce-id": {m.ID.String()}, "ce-type": {"order.placed@1"}, "ce-source": {"shop/orders"},
		"ce-datacontenttype": {"application/json"}, "ce-partitionkey": {"a%20b%22%25%C3%BC"}, "ce-time": {"2026-11-30T11:00:00Z"},
		"Nats-Msg-Id": {m.ID.String()},
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

func TestABrokerThatIsDownIsUnreachableUntilItIsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := outboxnats.NewPublisher(w.js)
	m := event("k", `{}`)
	w.server.Stop()
	// The first attempt may find the connection still up, so all of them count: none may succeed, none may wait for ctx.
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err := p.Publish(ctx, m)
		cancel()
		if !errors.Is(err, outbox.ErrUnreachable) || errors.Is(err, outbox.ErrPermanent) || errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want ErrUnreachable", err)
		}
	}
	check(t, w.server.Restart())
	eventually(t, "a publish after the restart", func() bool {
		err := p.Publish(t.Context(), m)
		if err != nil && !errors.Is(err, outbox.ErrUnreachable) {
			t.Fatalf("while the server starts: %v", err)
		}
		return err == nil
	})
	info, err := w.stream.Info(t.Context())
	check(t, err)
	if info.State.Msgs != 1 {
		t.Errorf("the stream has %d messages, want 1", info.State.Msgs)
	}
}

func TestAPublishUnderWayEndsWhenTheBrokerGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// Nobody but this subscription listens, and it never answers.
	asked := make(chan *nats.Msg, 1)
	_, err := w.nc.ChanSubscribe("silent", asked)
	check(t, err)
	m := event("k", `{}`)
	m.Topic = "silent"
	result := make(chan error, 1)
	go func() { result <- outboxnats.NewPublisher(w.js).Publish(context.Background(), m) }()
	receive(t, asked)
	w.server.Stop()
	if err := receive(t, result); !errors.Is(err, outbox.ErrUnreachable) {
		t.Errorf("got %v, want ErrUnreachable", err)
	}
}

func TestAClosedConnectionIsUnreachable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nc.Close()
	if err := outboxnats.NewPublisher(w.js).Publish(t.Context(), event("k", `{}`)); !errors.Is(err, outbox.ErrUnreachable) {
		t.Errorf("got %v, want ErrUnreachable", err)
	}
}

func TestTheEndOfTheContextIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.nc.SubscribeSync("silent")
	check(t, err)
	m := event("k", `{}`)
	m.Topic = "silent"
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = outboxnats.NewPublisher(w.js).Publish(ctx, m)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, outbox.ErrUnreachable) || errors.Is(err, outbox.ErrPermanent) {
		t.Errorf("got %v, want the context's error alone", err)
	}
}

func TestWhatTheBrokerDoesNotTake(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *jetstream.StreamConfig) {
		c.MaxMsgSize, c.MaxMsgs, c.Discard = 100_000, 1, jetstream.DiscardNew
	})
	w.publish(t, event("k", `{}`))
	for name, c := range map[string]struct {
		change    func(*outbox.Message)
		permanent bool
		want      string
	}{
		"larger than the server allows": {func(m *outbox.Message) { m.Payload = make([]byte, 2<<20) }, true, "maximum payload exceeded"},
		"larger than the stream allows": {func(m *outbox.Message) { m.Payload = make([]byte, 200_000) }, true, "message size exceeds maximum allowed"},
		"no subject":                    {func(m *outbox.Message) { m.Topic = "" }, true, "invalid subject"},
		"a subject with a space":        {func(m *outbox.Message) { m.Topic = "orders placed" }, true, "invalid subject"},
		"orders to the server":          {func(m *outbox.Message) { m.Headers = map[string]string{"nats-rollup": "all"} }, true, "a header may not be named"},
		"no stream":                     {func(m *outbox.Message) { m.Topic = "returns.made" }, false, "no stream listens to the subject"},
		"the stream is full":            {func(*outbox.Message) {}, false, "maximum messages exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := event("secret-key", `{"secret":true}`)
			c.change(m)
			err := outboxnats.NewPublisher(w.js).Publish(t.Context(), m)
			if err == nil || errors.Is(err, outbox.ErrUnreachable) || errors.Is(err, outbox.ErrPermanent) != c.permanent {
				t.Fatalf("got %v, want a permanent error: %v", err, c.permanent)
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestAServerWithoutAnswersFromJetStreamIsUnreachable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// The API of a domain that does not exist has no responders, as that of a server which is starting.
	js, err := jetstream.NewWithDomain(w.nc, "nowhere")
	check(t, err)
	m := event("k", `{}`)
	m.Topic = "returns.made"
	if err := outboxnats.NewPublisher(js).Publish(t.Context(), m); !errors.Is(err, outbox.ErrUnreachable) {
		t.Errorf("got %v, want ErrUnreachable", err)
	}
}
