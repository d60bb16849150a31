package outbox

import "github.com/outboxgen/outboxgen/runtime/outbox/storage"

// GeneratedV1 is what generated code refers to, so that code from an outboxgen that needs another runtime does not compile.
// Where it is undefined, require the runtime's version that belongs to the generator, or run go generate again.
const GeneratedV1 = true

// Ordering says what one event may expect of another with the same key.
type Ordering uint8

const (
	// OrderingNone publishes events in any order.
	OrderingNone Ordering = iota
	// OrderingKey publishes the events of one key in the order in which they were enqueued. While one is retried its
	// successors wait; once it is a dead letter they go on.
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

// Event is a payload that the catalogue declares. Generated payload types implement it.
type Event interface {
	EventType() EventType
	// EventKey returns the value of the key field as text, or "" where the event has no key.
	EventKey() string
}
