package inbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// Handler is what subscribers pass messages to. If Handle returns nil, the message may be
// acknowledged; otherwise the broker has to deliver it again. It may be called concurrently. *Inbox
// implements it; one of your own around it can count deliveries.
type Handler interface {
	Handle(ctx context.Context, m *outbox.Message) (Outcome, error)
}

// Outcome is what became of a delivery.
type Outcome int

const (
	// OutcomeFailed: nothing is changed, and the error says why.
	OutcomeFailed Outcome = iota
	// OutcomeApplied: the handler's transaction is committed.
	OutcomeApplied
	// OutcomeDuplicate: an earlier delivery was applied.
	OutcomeDuplicate
	// OutcomeIgnored: the consumer handles no version of the event.
	OutcomeIgnored
)

// String returns the outcome as a word.
func (o Outcome) String() string {
	switch o {
	case OutcomeFailed:
		return "failed"
	case OutcomeApplied:
		return "applied"
	case OutcomeDuplicate:
		return "duplicate"
	case OutcomeIgnored:
		return "ignored"
	default:
		return "unknown"
	}
}

// Inbox is one consumer's inbox. It is safe for concurrent use.
type Inbox[Tx any] struct {
	consumer string
	store    Store[Tx]
	routes   map[string]Route[Tx]
	names    map[string]bool // of the events that it handles in some version
}

// New returns the inbox of a consumer. Its routes are found by the type that a message carries,
// such as order.placed@1; New keeps the map. It panics if the consumer has no name or an argument
// is nil, which generated code excludes.
func New[Tx any](consumer string, store Store[Tx], routes map[string]Route[Tx]) *Inbox[Tx] {
	if consumer == "" || store == nil || routes == nil {
		panic(fmt.Sprintf("inbox: New(%q): consumer, store and routes are required", consumer))
	}
	names := map[string]bool{}
	for typeName := range routes {
		name, _, _ := strings.Cut(typeName, "@")
		names[name] = true
	}
	return &Inbox[Tx]{consumer: consumer, store: store, routes: routes, names: names}
}

// Handle applies m in a transaction of its own, at most once per event and consumer. It rings the
// store's doorbell after the commit, so that the relay finds what the route enqueued. The context
// that a route gets has the message's traceparent (outbox.Traceparent).
//
// Versions of one event may share an id: they are the same fact, which is applied once, in the
// version that arrives first. A version that the consumer does not know is a duplicate if another
// one has been applied, and otherwise an error, never Ignored: a process of another release may
// handle it.
//
// Every error is a *HandlerError, and the message has to be delivered again. Nothing has been
// changed then, unless only the answer to the commit was lost: a redelivery is a duplicate in that
// case. Of what it wraps, errors.Is and errors.As find
//
//   - ErrInFlight: another delivery of the event is being handled at this moment;
//   - ErrUnknownVersion: the consumer handles other versions of the event;
//   - *payload.Error without *outbox.EventError: the payload is not what the catalogue says, which
//     no redelivery to this release mends;
//   - *outbox.EventError: the handler enqueued an event that is invalid;
//   - *PanicError: the route panicked;
//   - ErrTxEnded: the route ended the transaction;
//   - what the route, the store or the database returned.
func (i *Inbox[Tx]) Handle(ctx context.Context, m *outbox.Message) (Outcome, error) {
	route, known := i.routes[m.TypeName()]
	if !known && !i.names[m.Type] {
		return OutcomeIgnored, nil
	}
	var claim Claim
	var due int
	var err error
	if known {
		traced := outbox.ContextWithTraceparent(ctx, m.Headers[outbox.HeaderTraceparent])
		claim, due, err = i.apply(traced, route, m)
	} else {
		claim, err = i.recall(ctx, m)
	}
	switch {
	case err != nil:
		return OutcomeFailed,
			&HandlerError{Consumer: i.consumer, Type: m.TypeName(), ID: m.ID, Err: err}
	case claim == ClaimDuplicate:
		if due > 0 {
			i.store.Doorbell().Ring()
		}
		return OutcomeDuplicate, nil
	default:
		i.store.Doorbell().Ring()
		return OutcomeApplied, nil
	}
}

// recall returns ClaimDuplicate if another version of m was applied, and otherwise
// ErrUnknownVersion.
func (i *Inbox[Tx]) recall(ctx context.Context, m *outbox.Message) (Claim, error) {
	r, err := i.store.Handled(ctx, HandledParams{Consumer: i.consumer, Event: m.ID})
	if err == nil && !r.Handled {
		err = ErrUnknownVersion
	}
	return ClaimDuplicate, err
}

// apply returns how the transaction began, and how many events it made due.
func (i *Inbox[Tx]) apply(
	ctx context.Context, route Route[Tx], m *outbox.Message,
) (claim Claim, due int, err error) {
	_, err = i.store.InTx(ctx, InTxParams[Tx]{Run: func(tx Tx) error {
		c, err := i.store.Claim(ctx, tx, ClaimParams{Consumer: i.consumer, Event: m.ID})
		if err != nil {
			return err
		}
		claim = c.Claim
		switch claim {
		case ClaimFresh:
			err = call(ctx, tx, route, m)
			if errors.Is(err, ErrInFlight) || errors.Is(err, ErrUnknownVersion) {
				// The error is of a Handle within the handler, not of this event.
				err = fmt.Errorf("within the handler: %v", err)
			}
			return err
		case ClaimDuplicate:
			r, err := i.store.Redispatch(ctx, tx, RedispatchParams{Causation: m.ID})
			due = r.Due
			return err
		default:
			return ErrInFlight
		}
	}})
	return claim, due, err
}

// call runs the route. It returns a panic as an error, so that the transaction is rolled back and
// the process continues.
func call[Tx any](ctx context.Context, tx Tx, route Route[Tx], m *outbox.Message) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Stack: string(debug.Stack())}
		}
	}()
	return route(ctx, tx, m)
}
