package servertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	outboxnats "github.com/outboxgen/outboxgen/runtime/publish/nats"
)

// way is how single messages are published.
type way func(*outboxnats.Publisher) outbox.Publisher

func single(p *outboxnats.Publisher) outbox.Publisher { return p }

func inBatches(p *outboxnats.Publisher) outbox.Publisher { return batching{p} }

// batching publishes each message as a batch of one.
type batching struct{ *outboxnats.Publisher }

func (b batching) Publish(ctx context.Context, m *outbox.Message) error {
	return b.PublishBatch(ctx, []*outbox.Message{m})[0]
}

// eachWay runs a test for messages by themselves and for batches.
func eachWay(t *testing.T, test func(t *testing.T, by way)) {
	t.Parallel()
	for name, by := range map[string]way{"single": single, "in batches": inBatches} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, by)
		})
	}
}

// batchOf returns messages of different keys.
func batchOf(n int, topic string) []*outbox.Message {
	batch := make([]*outbox.Message, n)
	for i := range batch {
		batch[i] = event(fmt.Sprint("key ", i), `{}`)
		batch[i].Topic = topic
	}
	return batch
}

// stored fails unless the stream holds n messages.
func (w *world) stored(t *testing.T, n int) {
	t.Helper()
	info, err := w.stream.Info(t.Context())
	check(t, err)
	if info.State.Msgs != uint64(n) {
		t.Errorf("the stream has %d messages, want %d", info.State.Msgs, n)
	}
}

func TestABadMessageTakesNoNeighbourWithIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *jetstream.StreamConfig) { c.MaxMsgSize = 100_000 })
	batch := batchOf(8, "orders.placed")
	batch[1].Payload = make([]byte, w.nc.MaxPayload()+1) // the client refuses it
	batch[3].Payload = make([]byte, 200_000)             // the stream does
	batch[4].Headers = map[string]string{"nats-rollup": "all"}
	for i, err := range publisher(t, w.js).PublishBatch(t.Context(), batch) {
		bad := i == 1 || i == 3 || i == 4
		if bad && !errors.Is(err, outbox.ErrPermanent) || !bad && err != nil {
			t.Errorf("message %d: got %v", i, err)
		}
	}
	w.stored(t, 5)
}

func TestAStreamThatBecomesFullInTheMiddleOfABatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *jetstream.StreamConfig) {
		c.MaxMsgs, c.Discard = 5, jetstream.DiscardNew
	})
	errs := publisher(t, w.js).PublishBatch(t.Context(), batchOf(10, "orders.placed"))
	for i, err := range errs {
		if fits := i < 5; fits && err != nil || !fits && !errors.Is(err, outbox.ErrUnreachable) {
			t.Errorf("message %d: got %v", i, err)
		}
	}
	w.stored(t, 5)
}

// TestABatchIsSentAgainUntilThereIsAStream makes the stream once the batch was sent several times.
func TestABatchIsSentAgainUntilThereIsAStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nc, js := w.connect(t)
	p, err := outboxnats.NewPublisher(js, outboxnats.PublisherConfig{
		MaxAttempts: 1 << 30, RetryDelay: time.Millisecond,
	})
	check(t, err)
	const n = 100
	result := make(chan []error, 1)
	go func() { result <- p.PublishBatch(t.Context(), batchOf(n, "returns.made")) }()
	eventually(t, "sent three times", func() bool { return nc.Stats().OutMsgs >= 3*n })
	w.stream, err = w.js.CreateStream(t.Context(),
		jetstream.StreamConfig{Name: "RETURNS", Subjects: []string{"returns.>"}})
	check(t, err)
	check(t, errors.Join(receive(t, result)...))
	w.stored(t, n)
}

// TestABatchWithoutAStreamIsExplainedOnce counts what the client sends: all attempts, and one
// question whether there is a stream.
func TestABatchWithoutAStreamIsExplainedOnce(t *testing.T) {
	t.Parallel()
	nc, js := newWorld(t).connect(t)
	p, err := outboxnats.NewPublisher(js, outboxnats.PublisherConfig{RetryDelay: time.Millisecond})
	check(t, err)
	before := nc.Stats().OutMsgs
	for i, err := range p.PublishBatch(t.Context(), batchOf(100, "returns.made")) {
		if !errors.Is(err, outbox.ErrUnreachable) ||
			!strings.Contains(err.Error(), "no stream listens to the subject") {
			t.Errorf("message %d: got %v", i, err)
		}
	}
	if got := nc.Stats().OutMsgs - before; got != 301 {
		t.Errorf("sent %d messages, want each of 100 three times, and one question", got)
	}
}

// TestTheBrokerGoesInTheMiddleOfBatches: every message has an outcome, and those that were stored
// without one are duplicates when they are published again.
func TestTheBrokerGoesInTheMiddleOfBatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *jetstream.StreamConfig) { c.Duplicates = time.Hour })
	p := publisher(t, w.js)
	var mu sync.Mutex
	var sent, failed []*outbox.Message
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for broken := false; !broken; {
				batch := batchOf(200, "orders.placed")
				errs := p.PublishBatch(context.Background(), batch)
				mu.Lock()
				sent = append(sent, batch...)
				for i, err := range errs {
					if err == nil {
						continue
					}
					if broken = true; !errors.Is(err, outbox.ErrUnreachable) {
						t.Errorf("got %v, want ErrUnreachable", err)
					}
					failed = append(failed, batch[i])
				}
				mu.Unlock()
			}
		})
	}
	eventually(t, "some batches", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(sent) >= 2000
	})
	w.server.Stop()
	running.Wait()
	check(t, w.server.Restart())
	eventually(t, "the rest is published", func() bool {
		var rest []*outbox.Message
		for i, err := range p.PublishBatch(t.Context(), failed) {
			if err != nil {
				rest = append(rest, failed[i])
			}
		}
		failed = rest
		return len(failed) == 0
	})
	w.stored(t, len(sent))
}

func TestABatchUnderWayEndsWhenTheConnectionIsClosed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := make(chan *nats.Msg, 10)
	_, err := w.nc.ChanSubscribe("silent", asked)
	check(t, err)
	nc, js := w.connect(t)
	result := make(chan []error, 1)
	p := publisher(t, js)
	go func() { result <- p.PublishBatch(context.Background(), batchOf(10, "silent")) }()
	receive(t, asked)
	nc.Close()
	for i, err := range receive(t, result) {
		if !errors.Is(err, outbox.ErrUnreachable) {
			t.Errorf("message %d: got %v, want ErrUnreachable", i, err)
		}
	}
}

// TestAnAnswerThatHasComeCounts though the context of the batch ends before another one comes. Who
// answers is no stream, since that would answer all.
func TestAnAnswerThatHasComeCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var answered sync.WaitGroup
	answered.Add(100)
	_, err := w.nc.Subscribe("half", func(msg *nats.Msg) {
		defer answered.Done()
		switch string(msg.Data) {
		case "taken":
			_ = msg.Respond([]byte(`{"stream":"HALF","seq":1}`))
		case "refused":
			_ = msg.Respond([]byte(`{"error":{"code":400,"err_code":10054}}`))
		}
	})
	check(t, err)
	_, err = w.nc.Subscribe("last", func(msg *nats.Msg) {
		_ = msg.Respond([]byte(`{"stream":"HALF","seq":2}`))
	})
	check(t, err)
	bodies := []string{"ignored", "taken", "refused"}
	batch := batchOf(100, "half")
	for i, m := range batch {
		m.Payload = []byte(bodies[i%3])
	}
	_, js := w.connect(t)
	p := publisher(t, js)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan []error, 1)
	go func() { result <- p.PublishBatch(ctx, batch) }()
	answered.Wait()
	// Its answer comes behind those of the others.
	check(t, p.PublishBatch(t.Context(), batchOf(1, "last"))[0])
	cancel()
	for i, err := range receive(t, result) {
		switch bodies[i%3] {
		case "ignored":
			if !errors.Is(err, context.Canceled) || errors.Is(err, outbox.ErrUnreachable) {
				t.Errorf("message %d: got %v, want the context's error alone", i, err)
			}
		case "taken":
			if err != nil {
				t.Errorf("message %d: got %v", i, err)
			}
		case "refused":
			if !errors.Is(err, outbox.ErrPermanent) {
				t.Errorf("message %d: got %v, want ErrPermanent", i, err)
			}
		}
	}
}

func TestManyBatchesAtOnceAreAllAcknowledged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory)
	p := publisher(t, w.js)
	const batches, size = 64, 256
	var running sync.WaitGroup
	for range batches {
		running.Go(func() {
			errs := p.PublishBatch(t.Context(), batchOf(size, "orders.placed"))
			if err := errors.Join(errs...); err != nil || len(errs) != size {
				t.Errorf("got %d outcomes: %v", len(errs), err)
			}
		})
	}
	running.Wait()
	w.stored(t, batches*size)
}

// TestTheCallersOwnLimitIsLeftAlone has the caller's own asynchronous publish use up the limit of
// its context.
func TestTheCallersOwnLimitIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.nc.SubscribeSync("silent")
	check(t, err)
	nc, _ := w.connect(t)
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(1))
	check(t, err)
	_, err = js.PublishAsync("silent", nil)
	check(t, err)
	errs := publisher(t, js).PublishBatch(t.Context(), batchOf(256, "orders.placed"))
	check(t, errors.Join(errs...))
	if n := js.PublishAsyncPending(); n != 1 {
		t.Errorf("%d publishes of the caller are pending, want its own one", n)
	}
	_, err = js.PublishAsync("silent", nil)
	if !errors.Is(err, jetstream.ErrTooManyStalledMsgs) {
		t.Errorf("the caller's second publish: got %v, want its limit to be kept", err)
	}
}

// TestWithoutADeadlineTheClientsOwnCounts has nobody answer.
func TestWithoutADeadlineTheClientsOwnCounts(t *testing.T) {
	eachWay(t, func(t *testing.T, by way) {
		w := newWorld(t)
		_, err := w.nc.SubscribeSync("silent")
		check(t, err)
		js, err := jetstream.New(w.nc, jetstream.WithDefaultTimeout(50*time.Millisecond))
		check(t, err)
		m := batchOf(1, "silent")[0]
		err = by(publisher(t, js)).Publish(context.Background(), m)
		if !errors.Is(err, outbox.ErrUnreachable) {
			t.Errorf("got %v, want ErrUnreachable", err)
		}
	})
}
