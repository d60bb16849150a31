package orders

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/outboxgen/outboxgen/examples/orders/internal/events"
	"github.com/outboxgen/outboxgen/examples/orders/internal/shopdb"
)

// ErrOutOfStock says that there is less of an article than was ordered.
var ErrOutOfStock = errors.New("out of stock")

// Inventory reserves stock for accepted orders.
type Inventory struct{}

var _ events.InventoryConsumer = Inventory{}

// HandleOrderPlacedV1 reduces the stock and emits an event that says so, both in tx. It need not
// look for duplicates, since it is not called for them. If it fails, the event is delivered again,
// until there is enough in stock.
func (Inventory) HandleOrderPlacedV1(
	ctx context.Context, tx events.InventoryTx, e events.OrderPlacedV1,
) error {
	// All handlers lock articles in the same order, so that two orders of the same articles cannot
	// deadlock.
	lines := slices.SortedFunc(slices.Values(e.Lines), func(a, b events.OrderLine) int {
		return strings.Compare(a.Sku, b.Sku)
	})
	db := shopdb.New(tx)
	for _, line := range lines {
		n, err := db.ReserveStock(ctx,
			shopdb.ReserveStockParams{Sku: line.Sku, Quantity: line.Quantity})
		if err != nil {
			return fmt.Errorf("reserve %s: %w", line.Sku, err)
		}
		if n == 0 {
			return fmt.Errorf("reserve %s: %w", line.Sku, ErrOutOfStock)
		}
	}
	_, err := tx.EnqueueStockReservedV1(ctx,
		events.StockReservedV1{OrderID: e.OrderID, Lines: e.Lines})
	return err
}
