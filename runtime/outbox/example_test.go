package outbox_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// LampSwitched is an event as outboxgen generates it from a catalogue.
type LampSwitched struct {
	Room string `json:"room"`
	On   bool   `json:"on"`
}

func (LampSwitched) EventType() outbox.EventType {
	return outbox.EventType{
		Name: "lamp.switched", Version: 1, Topic: "lamps", Ordering: outbox.OrderingKey,
	}
}

func (e LampSwitched) EventKey() string { return e.Room }

// A transaction enqueues events, and a relay publishes them once it has committed. The store in
// memory stands for a database: in a service, the store and its enqueue functions are generated.
func Example() {
	ctx := context.Background()
	store := outboxtest.NewMemStore(16)
	var broker outboxtest.RecordingPublisher
	relay, err := outbox.NewRelay(store, &broker, outbox.Config{})
	if err != nil {
		panic(err)
	}
	for _, end := range []func(*outboxtest.MemTx) error{
		(*outboxtest.MemTx).Rollback, (*outboxtest.MemTx).Commit,
	} {
		tx := store.Begin()
		_, err := tx.Enqueue(ctx, []outbox.Event{
			LampSwitched{Room: "hall", On: true}, LampSwitched{Room: "hall"},
		})
		if err := errors.Join(err, end(tx)); err != nil {
			panic(err)
		}
		stats, err := relay.RunOnce(ctx) // a service calls Run
		if err != nil {
			panic(err)
		}
		fmt.Println("published:", stats.Published)
	}
	for _, m := range broker.Messages() {
		fmt.Printf("%s on %s: %s\n", m.TypeName(), m.Topic, m.Payload)
	}

	// Output:
	// published: 0
	// published: 2
	// lamp.switched@1 on lamps: {"room":"hall","on":true}
	// lamp.switched@1 on lamps: {"room":"hall","on":false}
}

// An event that is invalid is refused before anything is sent to the database.
func ExampleEventError() {
	tx := outboxtest.NewMemStore(16).Begin()
	_, err := tx.Enqueue(context.Background(), []outbox.Event{LampSwitched{On: true}})
	var invalid *outbox.EventError
	fmt.Println(errors.As(err, &invalid), err)

	// Output:
	// true outbox: enqueue lamp.switched@1: the key field is empty
}
