package rival

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	wmnats "github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/components/forwarder"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
)

// Forwarder is Watermill's outbox: messages are wrapped in an envelope, stored in the queue schema
// of its SQL Pub/Sub, and forwarded to the publisher of another Pub/Sub.
type Forwarder struct {
	Batch int // messages that it reads at once
}

func (f Forwarder) queue() Watermill { return Watermill{Batch: f.Batch, Queue: true} }

// Name implements Contestant.
func (f Forwarder) Name() string { return fmt.Sprintf("Watermill, forwarder, batch %d", f.Batch) }

// Prepare implements Contestant.
func (f Forwarder) Prepare(ctx context.Context, db *lab.Database) error {
	return f.queue().Prepare(ctx, db)
}

// Fill implements Contestant.
func (f Forwarder) Fill(ctx context.Context, db *lab.Database, orders []Order) error {
	return InBatches(orders, func(batch []Order) error {
		return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
			return f.enqueueAll(ctx, tx, batch...)
		})
	})
}

// Enqueue implements Enqueuer.
func (f Forwarder) Enqueue(ctx context.Context, tx pgx.Tx, o Order) error {
	return f.enqueueAll(ctx, tx, o)
}

func (f Forwarder) enqueueAll(ctx context.Context, tx pgx.Tx, orders ...Order) error {
	publisher, err := f.queue().publisher(tx)
	if err != nil {
		return err
	}
	enveloping := forwarder.NewPublisher(publisher,
		forwarder.PublisherConfig{ForwarderTopic: topic})
	return enveloping.Publish(orders[0].EventType().Topic, newMessages(ctx, orders)...)
}

func (f Forwarder) open(
	db *lab.Database, backoff sql.BackoffManager, publisher message.Publisher,
) (*forwarder.Forwarder, error) {
	subscriber, err := f.queue().subscriber(db, backoff)
	if err != nil {
		return nil, err
	}
	return forwarder.NewForwarder(subscriber, publisher, watermill.NopLogger{}, forwarder.Config{
		ForwarderTopic: topic, CloseTimeout: stopLimit,
	})
}

// Drain implements Contestant. An event counts as published when the subscriber has committed its
// acknowledgement.
func (f Forwarder) Drain(ctx context.Context, db *lab.Database, n int) (time.Duration, error) {
	return f.drain(ctx, db, n, func(*message.Message) error { return nil })
}

// drainTo implements Streamer with Watermill's own publisher for JetStream, as its documentation
// advises for production. Like all contestants, it has the stream drop duplicates and uses a
// connection of its own.
func (f Forwarder) drainTo(
	ctx context.Context, db *lab.Database, n int, s *stream,
) (took time.Duration, err error) {
	publisher, err := wmnats.NewPublisher(wmnats.PublisherConfig{
		URL:       s.js.Conn().ConnectedUrl(),
		JetStream: wmnats.JetStreamConfig{TrackMsgId: true},
	}, watermill.NopLogger{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, publisher.Close()) }()
	return f.drain(ctx, db, n, func(m *message.Message) error {
		return publisher.Publish(Order{}.EventType().Topic, m)
	})
}

func (f Forwarder) drain(
	ctx context.Context, db *lab.Database, n int, publish func(*message.Message) error,
) (time.Duration, error) {
	rounds := watch(n)
	running, err := f.open(db, rounds, sink(func(m *message.Message) error {
		err := publish(m)
		if err != nil {
			rounds.end(err)
		} else {
			rounds.published.Add(1)
		}
		return err
	}))
	if err != nil {
		return 0, err
	}
	began := time.Now()
	run, cancel := context.WithCancelCause(ctx)
	go func() { cancel(running.Run(ctx)) }()
	err = rounds.wait(run)
	took := time.Since(began)
	err = errors.Join(err, running.Close())
	return took, errors.Join(err, exactly(n, rounds.published.Load()), f.queue().noneLeft(ctx, db))
}

// Follow implements Follower.
func (f Forwarder) Follow(
	ctx context.Context, db *lab.Database, ready func(), published func(uuid.UUID),
) error {
	running, err := f.open(db, sql.NewDefaultBackoffManager(pollInterval, 0),
		sink(func(m *message.Message) error {
			id, err := uuid.Parse(m.Metadata.Get(metadataKey))
			if err == nil {
				published(id)
			}
			return err
		}))
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() {
		select {
		case <-running.Running():
			ready()
		case <-ctx.Done():
		}
	})
	return running.Run(ctx)
}

// sink is the other Pub/Sub: it only calls a function with each message.
type sink func(*message.Message) error

// Publish implements message.Publisher.
func (s sink) Publish(_ string, messages ...*message.Message) error {
	for _, m := range messages {
		if err := s(m); err != nil {
			return err
		}
	}
	return nil
}

// Close implements message.Publisher.
func (sink) Close() error { return nil }
