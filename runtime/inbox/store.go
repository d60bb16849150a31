// Package inbox applies the events that a broker delivers, each one once.
//
// A broker delivers at least once. An Inbox deduplicates: a consumer's effects inside the handler's
// transaction happen once per event and consumer. What a handler does outside
// of that transaction can repeat. For a duplicate, the inbox skips the handler, but makes the
// events due at once that the first delivery enqueued.
package inbox

import (
	"context"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// Store is the inbox in a database, Tx its type of transaction. Generated code implements it. All
// methods may be called concurrently. Parameters and results may gain fields, and Store may gain
// methods, in any version: every implementation embeds BaseStore, which has defaults for them.
type Store[Tx any] interface {
	// InTx calls p.Run in a READ COMMITTED transaction of its own. If Run returns nil, InTx commits
	// and returns the error of that. Otherwise, and when Run panics, it rolls back and returns
	// Run's error as it is, or wrapped.
	InTx(ctx context.Context, p InTxParams[Tx]) (InTxResult, error)
	// Claim tries to get the lock of (consumer, event) until tx ends, without waiting for it, and
	// records the event as handled.
	Claim(ctx context.Context, tx Tx, p ClaimParams) (ClaimResult, error)
	// Redispatch makes due at once those pending events that the given event caused.
	Redispatch(ctx context.Context, tx Tx, p RedispatchParams) (RedispatchResult, error)
	// Handled reports whether a transaction that handled the event has committed, without claiming
	// the event. An Inbox asks for events in a version that it does not know: if it has applied
	// another version, this one is a duplicate.
	Handled(ctx context.Context, p HandledParams) (HandledResult, error)
	// Doorbell is rung after commits that concern the relay. If one value is both an inbox.Store
	// and a storage.Store, it is the doorbell of both.
	Doorbell() *storage.Doorbell

	mustEmbedBaseStore()
}

// BaseStore is embedded by every Store. It has defaults for the methods that Store gains after
// version 1, and for those that a store can do without.
type BaseStore[Tx any] struct{}

var _ interface{ mustEmbedBaseStore() } = BaseStore[any]{}

func (BaseStore[Tx]) mustEmbedBaseStore() {}

// Handled returns false, for stores that cannot tell: an event in a version that the consumer does
// not know then waits for a process that knows the version.
func (BaseStore[Tx]) Handled(context.Context, HandledParams) (HandledResult, error) {
	return HandledResult{}, nil
}

// InTxParams are the parameters of Store.InTx.
type InTxParams[Tx any] struct {
	Run func(tx Tx) error
}

// InTxResult is the result of Store.InTx.
type InTxResult struct{}

// ClaimParams are the parameters of Store.Claim.
type ClaimParams struct {
	Consumer string
	Event    outbox.ID
}

// ClaimResult is the result of Store.Claim.
type ClaimResult struct {
	Claim Claim
}

// RedispatchParams are the parameters of Store.Redispatch.
type RedispatchParams struct {
	Causation outbox.ID // of the events to make due
}

// RedispatchResult is the result of Store.Redispatch.
type RedispatchResult struct {
	Due int // how many events were made due
}

// HandledParams are the parameters of Store.Handled.
type HandledParams struct {
	Consumer string
	Event    outbox.ID
}

// HandledResult is the result of Store.Handled.
type HandledResult struct {
	Handled bool
}

// Claim says what a consumer may do with an event. The zero value is no claim.
type Claim int

const (
	// ClaimFresh: the consumer has not handled the event, and no other transaction can do so before
	// this one ends.
	ClaimFresh Claim = iota + 1
	// ClaimDuplicate: the consumer has handled the event.
	ClaimDuplicate
	// ClaimInFlight: another transaction is handling the event.
	ClaimInFlight
)

// String returns the claim in words.
func (c Claim) String() string {
	switch c {
	case ClaimFresh:
		return "fresh"
	case ClaimDuplicate:
		return "duplicate"
	case ClaimInFlight:
		return "in flight"
	default:
		return "no claim"
	}
}
