package servertest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	outboxnats "github.com/outboxgen/outboxgen/runtime/publish/nats"
)

// TestAMessageThatIsNotTakenTakesNoNeighbourWithIt has a batch with messages that are refused for
// different reasons, and others between them.
func TestAMessageThatIsNotTakenTakesNoNeighbourWithIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *jetstream.StreamConfig) { c.MaxMsgSize = 100_000 })
	var batch []*outbox.Message
	for n := range 10 {
		batch = append(batch, event(fmt.Sprint("key ", n), `{}`))
	}
	batch[2].Payload = make([]byte, 200_000)                          // the stream refuses it
	batch[5].Payload = make([]byte, w.nc.MaxPayload()+1)              // the client does
	batch[7].Headers = map[string]string{"nats-rollup": "all"}        // the adapter does
	batch[8].ID, batch[8].CreatedAt = batch[1].ID, batch[1].CreatedAt // a duplicate
	for i, err := range publisher(t, w.js).PublishBatch(t.Context(), batch) {
		refused := i == 2 || i == 5 || i == 7
		if (err != nil) != refused || refused && !errors.Is(err, outbox.ErrPermanent) {
			t.Errorf("message %d: got %v", i, err)
		}
	}
	info, err := w.stream.Info(t.Context())
	check(t, err)
	if info.State.Msgs != 6 {
		t.Errorf("the stream has %d messages, want 6", info.State.Msgs)
	}
}

// TestABatchForAStreamThatIsMissingWaitsForIt publishes to a subject of no stream, which comes
// while the client tries again.
func TestABatchForAStreamThatIsMissingWaitsForIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, err := outboxnats.NewPublisher(w.js, outboxnats.PublisherConfig{
		MaxAttempts: 100_000, RetryDelay: time.Millisecond,
	})
	check(t, err)
	var batch []*outbox.Message
	for n := range 5 {
		m := event(fmt.Sprint("key ", n), `{}`)
		m.Topic = "returns.made"
		batch = append(batch, m)
	}
	result := make(chan []error, 1)
	sent := w.nc.Stats().OutMsgs
	go func() { result <- p.PublishBatch(context.Background(), batch) }()
	eventually(t, "the batch was sent, and one of it again", func() bool {
		return w.nc.Stats().OutMsgs > sent+uint64(len(batch))
	})
	_, err = w.js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "returns", Subjects: []string{"returns.>"},
	})
	check(t, err)
	for i, err := range receive(t, result) {
		if err != nil {
			t.Errorf("message %d: got %v", i, err)
		}
	}
}

// TestABatchEndsWhenTheBrokerGoes has nobody answer, and the connection be lost then: every message
// has an outcome.
func TestABatchEndsWhenTheBrokerGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := make(chan *nats.Msg, 100)
	_, err := w.nc.ChanSubscribe("silent", asked)
	check(t, err)
	var batch []*outbox.Message
	for n := range 50 {
		m := event(fmt.Sprint("key ", n), `{}`)
		m.Topic = "silent"
		batch = append(batch, m)
	}
	result := make(chan []error, 1)
	go func() { result <- publisher(t, w.js).PublishBatch(context.Background(), batch) }()
	for range batch {
		receive(t, asked)
	}
	w.server.Stop()
	for i, err := range receive(t, result) {
		if !errors.Is(err, outbox.ErrUnreachable) {
			t.Errorf("message %d: got %v, want ErrUnreachable", i, err)
		}
	}
}

// TestABatchKeepsTheJetStreamOfItsCaller publishes through a context with a prefix of its own and a
// limit of one on what is pending.
func TestABatchKeepsTheJetStreamOfItsCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	js, err := jetstream.NewWithAPIPrefix(w.nc, "nowhere.API",
		jetstream.WithPublishAsyncMaxPending(1))
	check(t, err)
	p, err := outboxnats.NewPublisher(js, outboxnats.PublisherConfig{MaxAttempts: 1})
	check(t, err)
	var batch []*outbox.Message
	for n := range 100 {
		batch = append(batch, event(fmt.Sprint("key ", n), `{}`))
	}
	for i, err := range p.PublishBatch(t.Context(), batch) {
		if err != nil {
			t.Errorf("message %d: got %v", i, err)
		}
	}
	missing := event("k", `{}`)
	missing.Topic = "returns.made"
	// The question whether there is a stream goes to the caller's prefix, where nobody answers.
	errs := p.PublishBatch(t.Context(), []*outbox.Message{missing})
	if !errors.Is(errs[0], outbox.ErrUnreachable) {
		t.Errorf("got %v, want ErrUnreachable", errs[0])
	}
	if n := js.PublishAsyncPending(); n != 0 {
		t.Errorf("the caller's context has %d messages pending", n)
	}
}
