package inbox_test

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// A broker delivers a message twice, and its effect happens once. In a service, store and inbox are
// generated, and a subscriber calls Handle.
func Example() {
	store := newMemStore()
	stock := inbox.New("stock", store, map[string]inbox.Route[*memTx]{
		"order.placed@1": inbox.RouteTo(
			func(_ context.Context, tx *memTx, _ *outbox.Message, e placed) error {
				tx.effect("reserved for " + e.OrderID)
				return nil
			},
		),
	})
	m := &outbox.Message{
		ID: uuid.New(), Type: "order.placed", Version: 1, Payload: []byte(`{"order_id":"o1"}`),
	}
	for range 2 {
		outcome, err := stock.Handle(context.Background(), m)
		fmt.Println(outcome, err)
	}
	fmt.Println(store.applied())

	// Output:
	// applied <nil>
	// duplicate <nil>
	// [reserved for o1]
}
