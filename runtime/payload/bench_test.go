package payload_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/outboxgen/outboxgen/runtime/payload"
)

// placed holds only what encoding/json writes the same way, for a fair comparison.
type placed struct {
	OrderID    uuid.UUID         `json:"order_id"`
	CustomerID uuid.UUID         `json:"customer_id"`
	Total      placedMoney       `json:"total"`
	Lines      []placedLine      `json:"lines"`
	Note       *string           `json:"note,omitempty"`
	Email      string            `json:"email"`
	Labels     map[string]string `json:"labels"`
	PlacedAt   time.Time         `json:"placed_at"`
}

type placedMoney struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

type placedLine struct {
	SKU   string      `json:"sku"`
	Count int32       `json:"count"`
	Price placedMoney `json:"price"`
}

func benchEvent() placed {
	e := placed{
		OrderID: uuid.New(), CustomerID: uuid.New(), Total: placedMoney{4200, "EUR"},
		Note:  ptr("ring twice"),
		Email: "ann@example.org", Labels: map[string]string{"source": "web", "campaign": "none"},
		PlacedAt: time.Now().UTC(),
	}
	for range 3 {
		e.Lines = append(e.Lines,
			placedLine{SKU: "A-1002-77", Count: 2, Price: placedMoney{1400, "EUR"}})
	}
	return e
}

func BenchmarkMarshal(b *testing.B) {
	e := benchEvent()
	for name, marshal := range map[string]func(any) ([]byte, error){"payload": payload.Marshal,
		"encoding-json": json.Marshal} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				out, err := marshal(&e)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(out)))
			}
		})
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	data, err := payload.Marshal(benchEvent())
	if err != nil {
		b.Fatal(err)
	}
	for name, unmarshal := range map[string]func([]byte, any) error{"payload": payload.Unmarshal,
		"encoding-json": json.Unmarshal} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := unmarshal(data, new(placed)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
