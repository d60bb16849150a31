package orders_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/outboxgen/outboxgen/examples/internal/migrate"
	"github.com/outboxgen/outboxgen/examples/orders"
	"github.com/outboxgen/outboxgen/examples/orders/db"
	"github.com/outboxgen/outboxgen/examples/orders/internal/events"
	"github.com/outboxgen/outboxgen/examples/orders/internal/shopdb"
	"github.com/outboxgen/outboxgen/internal/testenv/postgresenv"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

var (
	server *postgresenv.Server
	quiet  = slog.New(slog.DiscardHandler)
)

// TestMain starts one server for all tests, since an example can neither skip nor fail if there is
// none.
func TestMain(m *testing.M) {
	var err error
	server, err = postgresenv.Start(context.Background(), postgresenv.Config{})
	var none *postgresenv.UnavailableError
	switch {
	case err == nil:
		code := m.Run()
		check(server.Stop())
		os.Exit(code)
	case errors.As(err, &none) && !none.Required && os.Getenv("CI") == "":
		fmt.Println("skipped:", err)
	default:
		fmt.Println(err)
		os.Exit(1)
	}
}

func TestARefusedOrderLeavesNothing(t *testing.T) {
	t.Parallel()
	pool := openShop(t.Context())
	defer pool.Close()
	order := twoMugs()
	order.Lines[0].Quantity = 0
	shop := orders.NewShop(events.NewStore(pool))
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return shop.PlaceOrder(t.Context(), tx, order)
	})
	if err == nil {
		t.Error("an order of nothing was placed")
	}
	if n := count(t, pool, "orders") + count(t, pool, "outbox"); n != 0 {
		t.Errorf("got %d rows, want none", n)
	}
}

func TestInventoryRefusesWhatIsNotInStock(t *testing.T) {
	t.Parallel()
	pool := openShop(t.Context())
	defer pool.Close()
	store := events.NewStore(pool)
	message := placeAndPublish(t.Context(), pool, store)
	if _, err := pool.Exec(t.Context(), "UPDATE stock SET available = 1"); err != nil {
		t.Fatal(err)
	}
	inventory := events.NewInventory(store, orders.Inventory{})
	if _, err := inventory.Handle(t.Context(), message); !errors.Is(err, orders.ErrOutOfStock) {
		t.Errorf("got error %v, want %v", err, orders.ErrOutOfStock)
	}
	if n := count(t, pool, "inbox") + count(t, pool, "outbox"); n != 0 {
		t.Errorf("got %d rows, want none", n)
	}
	if err := shopdb.New(pool).AddStock(t.Context(),
		shopdb.AddStockParams{Sku: "mug", Quantity: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := inventory.Handle(t.Context(), message); err != nil {
		t.Errorf("with enough in stock, got error %v", err)
	}
	if n := count(t, pool, "outbox"); n != 1 {
		t.Errorf("got %d events, want stock.reserved", n)
	}
}

func count(t *testing.T, pool *pgxpool.Pool, table string) (n int) {
	t.Helper()
	err := pool.QueryRow(t.Context(),
		"SELECT count(*) FROM "+pgx.Identifier{table}.Sanitize()).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// openShop returns a database of the caller's own, with ten mugs in stock.
func openShop(ctx context.Context) *pgxpool.Pool {
	database, err := server.CreateDatabase(ctx)
	check(err)
	pool, err := pgxpool.New(ctx, database.URL)
	check(err)
	check(migrate.Goose(ctx, pool, db.Migrations()))
	check(shopdb.New(pool).AddStock(ctx, shopdb.AddStockParams{Sku: "mug", Quantity: 10}))
	return pool
}

func twoMugs() orders.Order {
	return orders.Order{
		ID: uuid.New(), CustomerID: uuid.New(),
		Email: "customer@shop.example", Channel: events.ChannelWeb,
		Lines: []events.OrderLine{{
			Sku: "mug", Quantity: 2, Price: events.Money{Amount: 990, Currency: "EUR"},
		}},
	}
}

// placeAndPublish returns the message of an order that was placed.
func placeAndPublish(ctx context.Context, pool *pgxpool.Pool, store *events.Store) *outbox.Message {
	shop := orders.NewShop(store)
	check(pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		return shop.PlaceOrder(ctx, tx, twoMugs())
	}))
	var broker outboxtest.RecordingPublisher
	relayOnce(ctx, store, &broker)
	return &broker.Messages()[0]
}

// relayOnce publishes what is pending.
func relayOnce(ctx context.Context, store *events.Store, publisher outbox.Publisher) outbox.Stats {
	relay, err := outbox.NewRelay(store, publisher, outbox.Config{Logger: quiet})
	check(err)
	stats, err := relay.RunOnce(ctx)
	check(err)
	return stats
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
