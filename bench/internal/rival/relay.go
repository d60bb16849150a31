package rival

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench"
	"github.com/outboxgen/outboxgen/bench/events"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
	retained "github.com/outboxgen/outboxgen/bench/retained/events"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	outboxnats "github.com/outboxgen/outboxgen/runtime/publish/nats"
)

// Relay is the relay as users get it, with the code generated for the catalogue of the benchmarks.
type Relay struct {
	Config outbox.Config
	Retain bool // published events are retained
}

// fillBatch is how many events are committed at once.
const fillBatch = 1000

// Name implements Contestant.
func (Relay) Name() string { return "outboxgen" }

// Prepare implements Contestant.
func (Relay) Prepare(ctx context.Context, db *lab.Database) error {
	_, err := db.Exec(ctx, bench.Migration)
	return err
}

// Fill implements Contestant.
func (Relay) Fill(ctx context.Context, db *lab.Database, orders []Order) error {
	return InBatches(orders, func(batch []Order) error {
		return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error { return EnqueueAll(ctx, tx, batch) })
	})
}

// EnqueueAll enqueues orders with one call.
func EnqueueAll(ctx context.Context, tx pgx.Tx, orders []Order) error {
	_, err := service.Enqueue(ctx, tx, asEvents(orders)...)
	return err
}

// Encode returns the rows that EnqueueAll inserts.
func Encode(ctx context.Context, orders []Order) ([]outbox.Row, error) {
	return outbox.Encode(ctx, events.Shards, asEvents(orders))
}

func asEvents(orders []Order) []events.Event {
	list := make([]events.Event, len(orders))
	for i, o := range orders {
		list[i] = o
	}
	return list
}

// service is the store by which this process enqueues. Only its doorbell is used, so that it serves
// transactions of every database.
var service events.Store

// ServiceStore is the generated store with the doorbell of that one.
type ServiceStore struct{ *events.Store }

// Doorbell implements storage.Store.
func (ServiceStore) Doorbell() *storage.Doorbell { return service.Doorbell() }

// Store returns the store for the events in db.
func Store(db *lab.Database) ServiceStore { return ServiceStore{events.NewStore(db.Pool)} }

// Store returns the generated store, with or without retention.
func (r Relay) Store(db *lab.Database) storage.Store {
	if r.Retain {
		return retained.NewStore(db.Pool)
	}
	return Store(db)
}

// New returns a relay that logs nothing and publishes to publisher.
func (r Relay) New(db *lab.Database, publisher outbox.Publisher) (*outbox.Relay, error) {
	return outbox.NewRelay(r.Store(db), publisher, Silent(r.Config))
}

// Silent returns the configuration with a logger that discards everything.
func Silent(c outbox.Config) outbox.Config {
	c.Logger = slog.New(slog.DiscardHandler)
	return c
}

// Drain implements Contestant. The time is that of RunOnce as a whole, with joining and leaving.
func (r Relay) Drain(ctx context.Context, db *lab.Database, n int) (time.Duration, error) {
	var counter Counter
	took, err := r.drain(ctx, db, n, &counter)
	return took, errors.Join(err, exactly(n, counter.Load()))
}

// drainTo implements Streamer with outboxnats.Publisher and its defaults.
func (r Relay) drainTo(
	ctx context.Context, db *lab.Database, n int, s *stream,
) (time.Duration, error) {
	publisher, err := outboxnats.NewPublisher(s.js, outboxnats.PublisherConfig{})
	if err != nil {
		return 0, err
	}
	return r.drain(ctx, db, n, publisher)
}

func (r Relay) drain(
	ctx context.Context, db *lab.Database, n int, publisher outbox.Publisher,
) (time.Duration, error) {
	var warning firstWarning
	r.Config.Logger = warning.logger()
	relay, err := outbox.NewRelay(r.Store(db), publisher, r.Config)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	stats, err := relay.RunOnce(ctx)
	took := time.Since(began)
	return took, errors.Join(err, warning.err(), exactly(n, stats.Published))
}

// Counter is a publisher that only counts.
type Counter struct{ atomic.Int64 }

// Publish implements outbox.Publisher.
func (c *Counter) Publish(context.Context, *outbox.Message) error {
	c.Add(1)
	return nil
}

// exactly returns an error unless want and got are equal.
func exactly(want int, got int64) error {
	if int64(want) != got {
		return fmt.Errorf("bench: %d events were published, %d were pending", got, want)
	}
	return nil
}

// InBatches calls f with up to a thousand orders at a time, until it fails.
func InBatches(orders []Order, f func([]Order) error) error {
	for batch := range slices.Chunk(orders, fillBatch) {
		if err := f(batch); err != nil {
			return err
		}
	}
	return nil
}
