package rival

import (
	"encoding/json"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/outboxgen/outboxgen/bench/events"
)

// Order is the event that every contestant publishes: about 230 bytes of JSON, 300 with its row.
type Order = events.OrderPlacedV1

// Workload describes the events of a measurement.
type Workload struct {
	Events int
	Keys   int     // that the events are spread over
	Hot    float64 // the share of all events that belong to one key; 0 for none
}

// Uniform is a workload of n events over up to 10,000 keys.
func Uniform(n int) Workload { return Workload{Events: n, Keys: min(n, 10_000)} }

// Orders returns the events. The same workload has the same events.
func (w Workload) Orders() []Order {
	r := rand.New(rand.NewPCG(1, uint64(w.Events)))
	keys := make([]uuid.UUID, w.Keys)
	for i := range keys {
		keys[i] = randomUUID(r)
	}
	orders := make([]Order, w.Events)
	for i := range orders {
		key := keys[r.IntN(len(keys))]
		if r.Float64() < w.Hot {
			key = keys[0]
		}
		orders[i] = NewOrder(r, key)
	}
	return orders
}

// NewOrder returns an order with the given id.
func NewOrder(r *rand.Rand, id uuid.UUID) Order {
	return Order{
		OrderID: id, CustomerID: randomUUID(r),
		Total:    events.Money{Amount: r.Int64N(1_000_000), Currency: "EUR"},
		Note:     "leave it with the neighbours at number twelve, please",
		PlacedAt: time.Unix(1_800_000_000+r.Int64N(1_000_000), 0).UTC(),
	}
}

func randomUUID(r *rand.Rand) (id uuid.UUID) {
	for i := range id {
		id[i] = byte(r.Uint32())
	}
	return id
}

// JSON returns the order as contestants without generated code encode it.
func JSON(o Order) []byte {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err) // every type in it can be encoded
	}
	return b
}
