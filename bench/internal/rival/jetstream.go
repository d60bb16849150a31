package rival

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/outboxgen/outboxgen/bench/events"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/internal/testenv/natsenv"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// asyncWindow is how many asynchronous publishes may be unacknowledged when the client alone
// publishes.
const asyncWindow = 4096

// Streamer is a contestant that can publish to a stream.
type Streamer interface {
	Contestant
	// drainTo is Drain, but each event is published when the stream has acknowledged it. It need
	// not count what the stream holds.
	drainTo(ctx context.Context, db *lab.Database, n int, s *stream) (time.Duration, error)
}

// ToJetStream is a contestant that publishes to a JetStream server instead of counting. Each drain
// has a new server, whose start and end are not counted.
type ToJetStream struct{ Streamer }

// Name implements Contestant.
func (j ToJetStream) Name() string { return j.Streamer.Name() + ", to JetStream" }

// Drain implements Contestant. The stream must hold n events afterwards.
func (j ToJetStream) Drain(ctx context.Context, db *lab.Database, n int) (time.Duration, error) {
	return onStream(ctx, n, func(s *stream) (time.Duration, error) {
		return j.drainTo(ctx, db, n, s)
	})
}

// PublishAsync publishes orders to a new JetStream server by the client's asynchronous publish,
// with nothing but the client: as the messages that the relay makes of them. It returns the time
// until the last one was acknowledged. An error is returned unless the stream then holds them all.
func PublishAsync(ctx context.Context, orders []Order) (time.Duration, error) {
	return onStream(ctx, len(orders), func(s *stream) (time.Duration, error) {
		return s.publishAsync(ctx, orders)
	})
}

// stream is the only one of a JetStream server of its own. It is kept in files and takes orders.
type stream struct {
	jetstream.Stream
	js jetstream.JetStream
}

// onStream calls publish with a new stream, and returns an error unless that holds n messages
// afterwards.
func onStream(
	ctx context.Context, n int, publish func(*stream) (time.Duration, error),
) (took time.Duration, err error) {
	server, err := natsenv.Start(natsenv.Config{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	conn, err := nats.Connect(server.URL())
	if err != nil {
		return 0, fmt.Errorf("bench: connect to JetStream: %w", err)
	}
	defer conn.Close()
	s, err := createStream(ctx, conn)
	if err != nil {
		return 0, fmt.Errorf("bench: create a stream: %w", err)
	}
	took, err = publish(s)
	return took, errors.Join(err, s.expect(ctx, n))
}

func createStream(ctx context.Context, conn *nats.Conn) (*stream, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	created, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: "ORDERS", Subjects: []string{Order{}.EventType().Topic},
		Storage: jetstream.FileStorage,
	})
	return &stream{created, js}, err
}

// expect returns an error unless the stream holds n messages. It asks even if ctx has ended.
func (s *stream) expect(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	info, err := s.Info(ctx)
	if err != nil {
		return fmt.Errorf("bench: count what the stream holds: %w", err)
	}
	return exactly(n, int64(info.State.Msgs))
}

func (s *stream) publishAsync(ctx context.Context, orders []Order) (time.Duration, error) {
	js, err := jetstream.New(s.js.Conn(), jetstream.WithPublishAsyncMaxPending(asyncWindow))
	if err != nil {
		return 0, err
	}
	payloads := make([][]byte, len(orders))
	for i, o := range orders {
		payloads[i] = JSON(o)
	}
	began := time.Now()
	for i, o := range orders {
		m := cloudEvent(uuid.Must(uuid.NewV7()).String(), began, o, payloads[i])
		if _, err := js.PublishMsgAsync(m, jetstream.WithStallWait(stopLimit)); err != nil {
			return 0, err
		}
	}
	select {
	case <-js.PublishAsyncComplete():
		return time.Since(began), nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// cloudEvent returns the message that outboxnats makes of an order's event, written by hand. The
// stream drops a second one with the same id.
func cloudEvent(id string, created time.Time, o Order, payload []byte) *nats.Msg {
	t := o.EventType()
	return &nats.Msg{Subject: t.Topic, Data: payload, Header: nats.Header{
		"ce-specversion":      {"1.0"},
		"ce-id":               {id},
		"ce-type":             {t.String()},
		"ce-source":           {events.Service},
		"ce-datacontenttype":  {outbox.ContentType},
		"ce-partitionkey":     {o.EventKey()},
		"ce-time":             {created.UTC().Format(time.RFC3339Nano)},
		jetstream.MsgIDHeader: {id + "/" + t.String()},
	}}
}
