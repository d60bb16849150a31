package outboxtest

import "github.com/outboxgen/outboxgen/runtime/outbox"

// Event is an event to test with: the N-th of an Entity. The conformance suites enqueue it.
type Event struct {
	Entity string `json:"entity"`
	N      int64  `json:"n"`
}

// EventType implements outbox.Event.
func (e Event) EventType() outbox.EventType {
	t := outbox.EventType{Name: "thing.happened", Version: 1, Topic: "things"}
	if e.Entity != "" {
		t.Ordering = outbox.OrderingKey
	}
	return t
}

// EventKey implements outbox.Event: events of one entity are ordered, those without one are not.
func (e Event) EventKey() string { return e.Entity }
