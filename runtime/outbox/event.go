package outbox

import "github.com/outboxgen/outboxgen/runtime/outbox/storage"

// SupportsGenerated1 says that this runtime supports generated code of generation 1, which refers
// to it. When generated code begins to need more of the runtime, SupportsGenerated2 is added, and
// so on: newer code does not compile with an older runtime, at a line whose comment says what to
// do. None of them is ever removed, so that older code compiles with every newer runtime.
const SupportsGenerated1 = true

// Ordering says what one event may expect of another with the same key.
type Ordering uint8

const (
	// OrderingNone publishes events in any order.
	OrderingNone Ordering = iota
	// OrderingKey publishes the events of one key in the order in which they were enqueued. While
	// one is retried its successors wait; once it is a dead letter they are published.
	OrderingKey
)

// EventType is what the catalogue says of all events of one name and version.
type EventType struct {
	Name     string // such as order.placed
	Version  int    // from 1
	Topic    string
	Ordering Ordering
}

// String returns the name that the catalogue, the broker and every message uses: order.placed@1.
func (t EventType) String() string { return storage.TypeName(t.Name, t.Version) }

// Event is a payload that a catalogue declares. Generated payload types implement it, and each
// generated package has an interface Event of its own, which only the types of its catalogue
// implement.
type Event interface {
	EventType() EventType
	// EventKey returns the value of the key field as text, or "" if the event has no key.
	EventKey() string
}
