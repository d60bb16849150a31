package subscribe_test

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/subscribe"
)

// shelf is a broker's adapter at its smallest: it delivers messages from a slice, once each.
type shelf struct {
	messages []*outbox.Message
	handled  context.CancelFunc // called once nothing is left
	fetched  uint64
}

// AckWait says that a shelf delivers nothing again by itself.
func (s *shelf) AckWait() time.Duration { return 0 }

func (s *shelf) Fetch(ctx context.Context, n int, deliver func(*subscribe.Delivery)) error {
	if len(s.messages) == 0 {
		<-ctx.Done() // a broker would be asked again after a while
		return nil
	}
	for range min(n, len(s.messages)) {
		m := s.messages[0]
		s.messages = s.messages[1:]
		s.fetched++
		deliver(&subscribe.Delivery{
			Message: m, Topic: m.Topic, Sequence: s.fetched, Attempt: 1,
			Receipt: slip{m, len(s.messages) == 0, s},
		})
	}
	return nil
}

// slip answers a delivery. A real one tells the broker.
type slip struct {
	message *outbox.Message
	last    bool
	shelf   *shelf
}

func (s slip) Ack(context.Context) error {
	fmt.Println("acknowledged", s.message.TypeName(), "of", s.message.Key)
	if s.last {
		s.shelf.handled()
	}
	return nil
}

func (s slip) Nack(context.Context, time.Duration) error { return nil }
func (s slip) Release(context.Context) error             { return nil }
func (s slip) Reject(context.Context, string) error      { return nil }
func (s slip) Extend(context.Context) error              { return nil }

// stock is what an inbox does with a message.
type stock struct{}

func (stock) Handle(_ context.Context, m *outbox.Message) (inbox.Outcome, error) {
	fmt.Println("applied", m.TypeName(), "of", m.Key)
	return inbox.OutcomeApplied, nil
}

// An adapter implements Source and Receipt. The subscriber keeps the order of each key, limits how
// many handlers run, and ends gracefully.
func ExampleSubscriber() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	source := &shelf{handled: cancel, messages: []*outbox.Message{
		{ID: uuid.New(), Type: "order.placed", Version: 1, Key: "order-7"},
		{ID: uuid.New(), Type: "order.paid", Version: 1, Key: "order-7"},
	}}
	subscriber, err := subscribe.New(source, stock{}, subscribe.Config{Concurrency: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = subscriber.Run(ctx)
	fmt.Println(subscriber.Stats().Acknowledged, "acknowledged:", err)
	// Output:
	// applied order.placed@1 of order-7
	// acknowledged order.placed@1 of order-7
	// applied order.paid@1 of order-7
	// acknowledged order.paid@1 of order-7
	// 2 acknowledged: <nil>
}
