// Command relay publishes the shop's events to NATS JetStream. Run as many as you like: they share
// the work.
//
// It expects the migrations to be applied, and streams that have the catalogue's topics as
// subjects. On SIGTERM or Ctrl-C it finishes the publishes under way, gives its shards back and
// ends. On a second signal it ends at once.
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
	"github.com/outboxgen/outboxgen/examples/orders/internal/events"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	outboxnats "github.com/outboxgen/outboxgen/runtime/publish/nats"
)

func main() {
	var config outbox.Config
	database := flag.String("database", os.Getenv("DATABASE_URL"),
		"`URL` of the database; by default $DATABASE_URL")
	broker := flag.String("nats", os.Getenv("NATS_URL"),
		"`URL` of the broker; by default $NATS_URL")
	flag.DurationVar(&config.Lease, "lease", 0,
		"how long a killed relay's events wait for another; 0 means 30s")
	flag.DurationVar(&config.PollInterval, "poll", 0,
		"how long to sleep at most between reads; 0 means 1s")
	flag.DurationVar(&config.MinRetryDelay, "min-retry-delay", 0,
		"bound of the delay before a refused event's second attempt; 0 means 1s")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process
	if err := run(ctx, *database, *broker, config); err != nil {
		slog.Error("relay", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, database, broker string, config outbox.Config) error {
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	defer pool.Close()

	// The relay survives outages of the broker, so its connection must never give up.
	nc, err := nats.Connect(broker, nats.Name("relay"),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(time.Second))
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}

	publisher, err := outboxnats.NewPublisher(js, outboxnats.PublisherConfig{})
	if err != nil {
		return err
	}
	relay, err := outbox.NewRelay(events.NewStore(pool), publisher, config)
	if err != nil {
		return err
	}
	return relay.Run(ctx)
}
