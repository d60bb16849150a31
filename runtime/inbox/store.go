// Package inbox applies the events that a broker delivers, each one once.
//
// A broker delivers at least once. An Inbox makes of that effects at most once: a consumer's effect inside the handler's
// transaction happens once per event and consumer. What a handler does outside of that transaction can repeat. A duplicate
// repairs: it skips the handler, and makes sure that what the first attempt enqueued is on its way.
package inbox

import (
	"context"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// Store is the inbox in a database, Tx its type of transaction. Generated code implements it. All methods may be called
// concurrently.
type Store[Tx any] interface {
	// InTx runs f in a READ COMMITTED transaction of its own. It commits where f returns nil and returns the error of that;
	// otherwise, and when f panics, it rolls back, and returns f's error as it is, or wrapped.
	InTx(ctx context.Context, f func(tx Tx) error) error
	// Claim tries to get the lock of (consumer, event) until tx ends, without waiting for it, and records the event as handled.
	Claim(ctx context.Context, tx Tx, consumer string, event outbox.ID) (Claim, error)
	// Redispatch makes due at once those pending events that the given event caused, and returns how many there were.
	Redispatch(ctx context.Context, tx Tx, causation outbox.ID) (int, error)
	// Doorbell is rung after commits that concern the relay. It is the outbox.Store's where both are one.
	Doorbell() *storage.Doorbell
}

// Recaller is a Store that can tell whether a consumer has handled an event, without claiming it.
// An Inbox asks for events in a version that it does not know: one of which it has applied another
// version is a duplicate. Without it, such an event waits for a process that knows the version.
// Generated stores implement it.
type Recaller interface {
	// Handled reports whether a transaction that handled the event has committed.
	Handled(ctx context.Context, consumer string, event outbox.ID) (bool, error)
}

// Claim is the answer of Store.Claim.
type Claim int

const (
	// Fresh: nobody has handled the event, and nobody else can before the transaction ends.
	Fresh Claim = iota + 1
	// Duplicate: the consumer has handled the event.
	Duplicate
	// InFlight: another transaction is handling the event.
	InFlight
)

// String returns the claim in words.
func (c Claim) String() string {
	return map[Claim]string{Fresh: "fresh", Duplicate: "duplicate", InFlight: "in flight"}[c]
}
