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
	// the queue schema, which deletes what is acknowledged, instead of the default one, which keeps
	// an offset
	Queue bool
}

// topic names the tables.
const topic = "orders"

// pollInterval is how long a subscriber that found nothing waits.
const pollInterval = time.Millisecond

// bytea is inserted a little faster than the default, JSON, and read as fast.
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

// publisher returns one that is part of tx; the library wants one for each transaction.
func (w Watermill) publisher(tx pgx.Tx) (message.Publisher, error) {
	return sql.NewPublisher(sql.TxFromPgx(tx), sql.PublisherConfig{SchemaAdapter: w.schema()},
		watermill.NopLogger{})
}

// newMessage carries what the relay's row carries.
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

// Drain implements Contestant. The last event is published when the subscriber has committed its
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

// noneLeft is an error unless everything is acknowledged.
func (w Watermill) noneLeft(ctx context.Context, db *lab.Database) error {
	if w.Queue {
		return noneLeft(ctx, db, `SELECT count(*) FROM watermill_orders`)
	}
	return noneLeft(ctx, db, `
		SELECT count(*) FROM watermill_orders m, watermill_offsets_orders o
		WHERE (m.transaction_id, m."offset") > (o.last_processed_transaction_id, o.offset_acked)`)
}

// rounds watches a subscriber, which reports each of its transactions and asks how long to wait
// until the next.
type rounds struct {
	sql.BackoffManager
	want      int64
	published atomic.Int64
	once      sync.Once
	// ended is closed when a transaction or a publish has failed, or when a transaction has ended
	// and everything that is wanted was published before.
	ended chan struct{}
	err   error // of what failed; to be read when ended is closed
}

func watch(n int) *rounds {
	return &rounds{
		BackoffManager: sql.NewDefaultBackoffManager(pollInterval, 0),
		want:           int64(n), ended: make(chan struct{}),
	}
}

// HandleError implements sql.BackoffManager. The subscriber would try again after an error, and be
// slower for it.
func (r *rounds) HandleError(logger watermill.LoggerAdapter, noMsg bool, err error) time.Duration {
	if err != nil || r.published.Load() >= r.want {
		r.end(err)
	}
	return r.BackoffManager.HandleError(logger, noMsg, err)
}

// end ends the wait. Only the first call counts.
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
