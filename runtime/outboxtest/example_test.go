package outboxtest_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// A test of what a service does when its broker refuses an event for good.
func ExampleFaultyPublisher() {
	ctx := context.Background()
	store := outboxtest.NewMemStore(16)
	tx := store.Begin()
	_, err := tx.Enqueue(ctx, []outbox.Event{outboxtest.Event{Entity: "a", N: 1}})
	if err != nil {
		panic(err)
	}
	if err := tx.Commit(); err != nil {
		panic(err)
	}
	broker := &outboxtest.FaultyPublisher{
		Decide: func(*outbox.Message) outboxtest.Fault { return outboxtest.RefuseForGood },
	}
	relay, err := outbox.NewRelay(store, broker,
		outbox.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	stats, err := relay.RunOnce(ctx)
	fmt.Println("published:", stats.Published, "dead:", stats.Dead, err)

	// Output:
	// published: 0 dead: 1 <nil>
}
