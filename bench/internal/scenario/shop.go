package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
)

// The business of the benchmarks: a transaction inserts an order and charges its customer. It has
// nothing that would make it expensive, such as foreign keys or triggers, beside which an outbox
// would look cheap.
const (
	shopTables = `
		CREATE TABLE customer (
			id     uuid   PRIMARY KEY,
			orders bigint NOT NULL DEFAULT 0,
			spent  bigint NOT NULL DEFAULT 0
		);
		CREATE TABLE orders (
			id          uuid        PRIMARY KEY,
			customer_id uuid        NOT NULL,
			amount      bigint      NOT NULL,
			currency    text        NOT NULL,
			note        text        NOT NULL,
			placed_at   timestamptz NOT NULL
		);
		CREATE INDEX orders_customer ON orders (customer_id)`
	insertOrder = `
		INSERT INTO orders (id, customer_id, amount, currency, note, placed_at)
		VALUES ($1, $2, $3, $4, $5, $6)`
	chargeCustomer = `UPDATE customer SET orders = orders + 1, spent = spent + $2 WHERE id = $1`
)

// shop describes the transaction in the table of results.
const shop = "one INSERT of an order and one UPDATE of its customer"

const customers = 10_000

// openShop creates the tables of the shop, with its customers.
func openShop(ctx context.Context, db *lab.Database) error {
	if _, err := db.Exec(ctx, shopTables); err != nil {
		return fmt.Errorf("bench: open the shop: %w", err)
	}
	ids := customerIDs()
	_, err := db.CopyFrom(ctx, pgx.Identifier{"customer"}, []string{"id"},
		pgx.CopyFromSlice(len(ids), func(i int) ([]any, error) {
			return []any{ids[i]}, nil
		}))
	if err != nil {
		return fmt.Errorf("bench: open the shop: %w", err)
	}
	return nil
}

func customerIDs() []uuid.UUID {
	return uuids("customers", customers)
}

// uuids returns n ids, the same for the same name.
func uuids(name string, n int) []uuid.UUID {
	seed := [32]byte{}
	copy(seed[:], name)
	source := rand.NewChaCha8(seed)
	ids := make([]uuid.UUID, n)
	for i := range ids {
		ids[i] = uuid.Must(uuid.NewRandomFromReader(source))
	}
	return ids
}

// sales returns n orders, each with an id of its own, for the customers of the shop.
func sales(n int) []rival.Order {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	buyers := customerIDs()
	orders := make([]rival.Order, n)
	for i, id := range uuids("orders", n) {
		orders[i] = rival.NewOrder(r, id)
		orders[i].CustomerID = buyers[r.IntN(len(buyers))]
	}
	return orders
}

// enqueueing enqueues an order's event in its business transaction.
type enqueueing func(context.Context, pgx.Tx, rival.Order) error

// queueing does so in the batch of a transaction whose statements are pipelined.
type queueing func(context.Context, *pgx.Batch, rival.Order) error

// sell runs the transaction, one statement after the other.
func sell(ctx context.Context, conn beginner, o rival.Order, enqueue enqueueing) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, insertOrder, orderColumns(o)...); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, chargeCustomer, o.CustomerID, o.Total.Amount); err != nil {
			return err
		}
		return enqueue(ctx, tx, o)
	})
}

// sellPipelined runs the transaction with its statements in one batch.
func sellPipelined(ctx context.Context, conn beginner, o rival.Order, queue queueing) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var batch pgx.Batch
		batch.Queue(insertOrder, orderColumns(o)...)
		batch.Queue(chargeCustomer, o.CustomerID, o.Total.Amount)
		if err := queue(ctx, &batch, o); err != nil {
			return err
		}
		return tx.SendBatch(ctx, &batch).Close()
	})
}

// beginner is a connection, or a pool of them.
type beginner interface {
	Begin(context.Context) (pgx.Tx, error)
}

func orderColumns(o rival.Order) []any {
	return []any{o.OrderID, o.CustomerID, o.Total.Amount, o.Total.Currency, o.Note, o.PlacedAt}
}

// noEvent and nothingQueued are for transactions without an event.
func noEvent(context.Context, pgx.Tx, rival.Order) error { return nil }

func nothingQueued(context.Context, *pgx.Batch, rival.Order) error { return nil }

// expectRows returns an error unless the table has n rows.
func expectRows(ctx context.Context, db *lab.Database, table string, n int) error {
	var got int
	if err := db.QueryRow(ctx,
		"SELECT count(*) FROM "+pgx.Identifier{table}.Sanitize()).Scan(&got); err != nil {
		return fmt.Errorf("bench: count the rows of %s: %w", table, err)
	}
	if got != n {
		return fmt.Errorf("bench: %s holds %d rows, %d are expected", table, got, n)
	}
	return nil
}
