package rival

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
)

// Watermill is Watermill's SQL Pub/Sub on pgx, with one subscriber.
type Watermill struct {
	Batch int // messages that the subscriber reads at once
	// Queue selects the queue schema, which deletes acknowledged messages, instead of the default
	// one, which stores an offset.
	Queue bool
}

// topic is part of the tables' names.
const topic = "orders"

// pollInterval is how long a subscriber waits when it found nothing.
const pollInterval = time.Millisecond

// bytea is inserted a little faster than JSON, the default, and read as fast.
func bytea(string) string { return "BYTEA" }

func (w Watermill) schema() sql.SchemaAdapter {
	if w.Queue {
		return sql.PostgreSQLQueueSchema{SubscribeBatchSize: w.Batch, GeneratePayloadType: bytea}
	}
	return sql.DefaultPostgreSQLSchema{SubscribeBatchSize: w.Batch, GeneratePayloadType: bytea}
}

func (w Watermill) offsets() sql.OffsetsAdapter {
	if w.Queue {
		return sql.PostgreSQLQueueOffsetsAdapter{DeleteOnAck: true}
	}
	return sql.DefaultPostgreSQLOffsetsAdapter{}
}

func (w Watermill) subscriber(
	db *lab.Database, backoff sql.BackoffManager,
) (*sql.Subscriber, error) {
	return sql.NewSubscriber(sql.BeginnerFromPgx(db.Pool), sql.SubscriberConfig{
		SchemaAdapter: w.schema(), OffsetsAdapter: w.offsets(), BackoffManager: backoff,
	}, watermill.NopLogger{})
}

// publisher returns a publisher that writes in tx. The library needs one for each transaction.
func (w Watermill) publisher(tx pgx.Tx) (message.Publisher, error) {
	return sql.NewPublisher(sql.TxFromPgx(tx), sql.PublisherConfig{SchemaAdapter: w.schema()},
		watermill.NopLogger{})
}

// newMessage returns a message with the same contents as the relay's row.
func newMessage(ctx context.Context, o Order) *message.Message {
	m := message.NewMessageWithContext(ctx, watermill.NewUUID(), JSON(o))
	m.Metadata = message.Metadata{"type": o.EventType().String(), metadataKey: o.EventKey()}
	return m
}

const metadataKey = "key"

// Name implements Contestant.
func (w Watermill) Name() string {
	if w.Queue {
		return fmt.Sprintf("Watermill, queue schema, batch %d", w.Batch)
	}
	return fmt.Sprintf("Watermill, default schema, batch %d", w.Batch)
}

// Prepare implements Contestant.
func (w Watermill) Prepare(_ context.Context, db *lab.Database) error {
	s, err := w.subscriber(db, nil)
	if err != nil {
		return err
	}
	return s.SubscribeInitialize(topic)
}

// Fill implements Contestant.
func (w Watermill) Fill(ctx context.Context, db *lab.Database, orders []Order) error {
	return InBatches(orders, func(batch []Order) error {
		return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
			return w.enqueueAll(ctx, tx, batch...)
		})
	})
}

// Enqueue implements Enqueuer.
func (w Watermill) Enqueue(ctx context.Context, tx pgx.Tx, o Order) error {
	return w.enqueueAll(ctx, tx, o)
}

func (w Watermill) enqueueAll(ctx context.Context, tx pgx.Tx, orders ...Order) error {
	publisher, err := w.publisher(tx)
	if err != nil {
		return err
	}
	return publisher.Publish(topic, newMessages(ctx, orders)...)
}

func newMessages(ctx context.Context, orders []Order) []*message.Message {
	messages := make([]*message.Message, len(orders))
	for i, o := range orders {
		messages[i] = newMessage(ctx, o)
	}
	return messages
}

// Drain implements Contestant. An event counts as published when the subscriber has committed its
// acknowledgement.
func (w Watermill) Drain(ctx context.Context, db *lab.Database, n int) (time.Duration, error) {
	rounds := watch(n)
	subscriber, err := w.subscriber(db, rounds)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	messages, err := subscriber.Subscribe(ctx, topic)
	if err != nil {
		return 0, err
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for m := range messages {
			rounds.published.Add(1)
			m.Ack()
		}
	})
	err = rounds.wait(ctx)
	took := time.Since(began)
	err = errors.Join(err, subscriber.Close())
	wg.Wait()
	return took, errors.Join(err, exactly(n, rounds.published.Load()), w.noneLeft(ctx, db))
}

// noneLeft returns an error if messages are not acknowledged.
func (w Watermill) noneLeft(ctx context.Context, db *lab.Database) error {
	if w.Queue {
		return noneLeft(ctx, db, `SELECT count(*) FROM watermill_orders`)
	}
	return noneLeft(ctx, db, `
		SELECT count(*) FROM watermill_orders m, watermill_offsets_orders o
		WHERE (m.transaction_id, m."offset") > (o.last_processed_transaction_id, o.offset_acked)`)
}

// rounds watches a subscriber, which reports each of its transactions and asks how long to wait
// before the next one.
type rounds struct {
	sql.BackoffManager
	want      int64
	published atomic.Int64
	once      sync.Once
	// ended is closed when a transaction or a publish has failed, or when a transaction has ended
	// before which everything wanted had been published.
	ended chan struct{}
	err   error // what failed; to be read once ended is closed
}

func watch(n int) *rounds {
	return &rounds{
		BackoffManager: sql.NewDefaultBackoffManager(pollInterval, 0),
		want:           int64(n), ended: make(chan struct{}),
	}
}

// HandleError implements sql.BackoffManager. The subscriber retries after an error, and would be
// slower for it.
func (r *rounds) HandleError(logger watermill.LoggerAdapter, noMsg bool, err error) time.Duration {
	if err != nil || r.published.Load() >= r.want {
		r.end(err)
	}
	return r.BackoffManager.HandleError(logger, noMsg, err)
}

// end closes ended. Only the first call has an effect.
func (r *rounds) end(err error) {
	r.once.Do(func() {
		r.err = err
		close(r.ended)
	})
}

func (r *rounds) wait(ctx context.Context) error {
	select {
	case <-r.ended:
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
