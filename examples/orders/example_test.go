package orders_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/examples/orders"
	"github.com/outboxgen/outboxgen/examples/orders/internal/events"
	"github.com/outboxgen/outboxgen/examples/orders/internal/shopdb"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// An order and its event are written in one transaction. A relay publishes the event once that has
// committed.
func Example_enqueue() {
	ctx := context.Background()
	pool := openShop(ctx)
	defer pool.Close()

	store := events.NewStore(pool) // one for each database
	shop := orders.NewShop(store)
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		return shop.PlaceOrder(ctx, tx, twoMugs())
	})
	check(err)

	var broker outboxtest.RecordingPublisher
	relay, err := outbox.NewRelay(store, &broker, outbox.Config{})
	check(err)
	stats, err := relay.RunOnce(ctx) // a process of its own calls Run
	check(err)

	fmt.Println("published:", stats.Published)
	for _, m := range broker.Messages() {
		fmt.Println(m.TypeName(), "from", m.Source, "on", m.Topic)
	}

	// Output:
	// published: 1
	// order.placed@1 from shop/orders on shop.orders
}

// A message is delivered twice, as every broker does at times. Its effect happens once.
func Example_consumer() {
	ctx := context.Background()
	pool := openShop(ctx)
	defer pool.Close()
	store := events.NewStore(pool)
	message := placeAndPublish(ctx, pool, store)

	inventory := events.NewInventory(store, orders.Inventory{})
	for range 2 {
		// A subscriber calls Handle, and acknowledges the message if err is nil.
		outcome, err := inventory.Handle(ctx, message)
		check(err)
		mugs, err := shopdb.New(pool).GetStock(ctx, "mug")
		check(err)
		fmt.Println(outcome, "- mugs in stock:", mugs)
	}

	// Output:
	// applied - mugs in stock: 8
	// duplicate - mugs in stock: 8
}

// The broker refuses an event for good, so that it becomes a dead letter. Once the cause is
// removed, an operator replays it.
func Example_deadLetters() {
	ctx := context.Background()
	pool := openShop(ctx)
	defer pool.Close()
	store := events.NewStore(pool)
	shop := orders.NewShop(store)
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		return shop.PlaceOrder(ctx, tx, twoMugs())
	})
	check(err)

	refusing := &outboxtest.FaultyPublisher{
		Decide: func(*outbox.Message) outboxtest.Fault { return outboxtest.RefuseForGood },
	}
	fmt.Println("dead:", relayOnce(ctx, store, refusing).Dead)

	list, err := store.ListDeadLetters(ctx, storage.ListDeadLettersParams{Limit: 10})
	check(err)
	var ids []storage.ID
	for _, letter := range list.DeadLetters {
		ids = append(ids, letter.ID)
		fmt.Printf("%s after %d attempt: %s\n", letter.TypeName(), letter.Attempts, letter.Error)
	}

	_, err = store.ReplayDeadLetters(ctx, storage.ReplayDeadLettersParams{IDs: ids})
	check(err)
	mended := &outboxtest.RecordingPublisher{}
	fmt.Println("published:", relayOnce(ctx, store, mended).Published)

	// Output:
	// dead: 1
	// order.placed@1 after 1 attempt: outboxtest: refused
	// published: 1
}
