// Command inventory consumes the shop's events from NATS JetStream and reserves stock. Run as many
// as you like: an event is applied once, whoever gets it.
//
// It expects the migrations to be applied, and the stream to exist. On SIGTERM or Ctrl-C it
// finishes the events that it is handling and ends. On a second signal it ends at once.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/outboxgen/outboxgen/examples/orders"
	"github.com/outboxgen/outboxgen/examples/orders/internal/events"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	outboxnats "github.com/outboxgen/outboxgen/runtime/publish/nats"
)

func main() {
	database := flag.String("database", os.Getenv("DATABASE_URL"),
		"`URL` of the database; by default $DATABASE_URL")
	broker := flag.String("nats", os.Getenv("NATS_URL"),
		"`URL` of the broker; by default $NATS_URL")
	stream := flag.String("stream", "ORDERS", "the stream that has the topic shop.orders")
	ackWait := flag.Duration("ack-wait", 30*time.Second,
		"how long a killed consumer's events wait for another")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process
	if err := run(ctx, *database, *broker, *stream, *ackWait); err != nil {
		slog.Error("inventory", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, database, broker, stream string, ackWait time.Duration) error {
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	defer pool.Close()
	nc, err := nats.Connect(broker, nats.Name("inventory"), nats.MaxReconnects(-1),
		nats.ReconnectWait(time.Second))
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	defer nc.Close()
	consumer, err := durable(ctx, nc, stream, ackWait)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}

	// A relay in another process publishes the events that the handler emits. ForwardWakeups wakes
	// it, so that they do not wait for its next poll.
	store := events.NewStore(pool)
	go outbox.ForwardWakeups(ctx, store)
	inventory := events.NewInventory(store, orders.Inventory{})

	subscriber, err := outboxnats.NewSubscriber(consumer, inventory, outboxnats.SubscriberConfig{})
	if err != nil {
		return err
	}
	return subscriber.Run(ctx)
}

// durable returns the durable consumer that all processes of the inventory share.
func durable(
	ctx context.Context, nc *nats.Conn, stream string, ackWait time.Duration,
) (jetstream.Consumer, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	return js.CreateOrUpdateConsumer(ctx, stream, jetstream.ConsumerConfig{
		Durable:       "inventory",
		FilterSubject: "shop.orders",
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       ackWait,
		MaxDeliver:    -1,
		// With a limit, the events of one key that fails for long could use it up and stop all
		// others.
		MaxAckPending: -1,
	})
}
