package inbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// Handler is what subscribers hand messages to. Where Handle returns nil, the message may be acknowledged; otherwise the broker
// has to deliver it again. It may be called concurrently. *Inbox implements it; one of your own around it can count deliveries.
type Handler interface {
	Handle(ctx context.Context, m *outbox.Message) (Outcome, error)
}

// Outcome is what became of a delivery.
type Outcome int

const (
	// Failed: nothing is changed, and the error says why.
	Failed Outcome = iota
	// Applied: the handler's transaction is committed.
	Applied
	// Repeated: a duplicate. An earlier delivery was applied.
	Repeated
	// Ignored: the consumer handles no version of the event.
	Ignored
)

// String returns the outcome in a word.
func (o Outcome) String() string {
	return map[Outcome]string{Failed: "failed", Applied: "applied", Repeated: "duplicate", Ignored: "ignored"}[o]
}

// Inbox is one consumer's inbox. It is safe for concurrent use.
type Inbox[Tx any] struct {
	consumer string
	store    Store[Tx]
	routes   map[string]Route[Tx]
	names    map[string]bool // of the events that it handles in some version
}

// New returns the inbox of a consumer. Its routes are found by the type that a message carries, such as order.placed@1; New keeps the
// map. It panics where the consumer has no name or an argument is nil, which generated code excludes.
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

// Handle applies m in a transaction of its own, at most once per event and consumer, and rings the store's doorbell where events
// have been enqueued or made due. The context that a route gets has the
// message's traceparent (outbox.Traceparent) and the message itself (MessageFrom).
//
// Two versions of one event may share an id: they tell one fact, which is applied once, in the
// version that comes first. A version that the consumer does not know is a duplicate if another one
// has been applied, and otherwise an error, never Ignored: a process of another release may know
// it.
//
// Every error is a *HandlerError, and the message has to be delivered again. Nothing has been changed then, unless only the
// answer to the commit was lost: a redelivery is a duplicate in that case. Of what it wraps, errors.Is and errors.As find
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
		return Ignored, nil
	}
	var claim Claim
	var due int
	var err error
	if known {
		claim, due, err = i.apply(contextFor(ctx, m), route, m)
	} else {
		claim, err = i.recall(ctx, m)
	}
	switch {
	case err != nil:
		return Failed, &HandlerError{Consumer: i.consumer, Type: m.TypeName(), ID: m.ID, Err: err}
	case claim == Duplicate:
		if due > 0 {
			i.store.Doorbell().Ring()
		}
		return Repeated, nil
	default:
		i.store.Doorbell().Ring()
		return Applied, nil
	}
}

// recall returns Duplicate if another version of m was applied, and otherwise ErrUnknownVersion.
func (i *Inbox[Tx]) recall(ctx context.Context, m *outbox.Message) (Claim, error) {
	store, ok := i.store.(Recaller)
	if !ok {
		return 0, ErrUnknownVersion
	}
	handled, err := store.Handled(ctx, i.consumer, m.ID)
	if err == nil && !handled {
		err = ErrUnknownVersion
	}
	return Duplicate, err
}

// apply returns how the transaction began, and how many events it made due.
func (i *Inbox[Tx]) apply(ctx context.Context, route Route[Tx], m *outbox.Message) (claim Claim, due int, err error) {
	err = i.store.InTx(ctx, func(tx Tx) (err error) {
		claim, err = i.store.Claim(ctx, tx, i.consumer, m.ID)
		switch {
		case err != nil:
			return err
		case claim == Fresh:
			err = call(ctx, tx, route, m)
			if errors.Is(err, ErrInFlight) || errors.Is(err, ErrUnknownVersion) {
				// It is of a Handle within the handler, not of this event.
				err = fmt.Errorf("within the handler: %v", err)
			}
			return err
		case claim == Duplicate:
			due, err = i.store.Redispatch(ctx, tx, m.ID)
			return err
		default:
			return ErrInFlight
		}
	})
	return claim, due, err
}

// call makes an error of a panic, so that the transaction is rolled back and the subscriber lives on.
func call[Tx any](ctx context.Context, tx Tx, route Route[Tx], m *outbox.Message) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Stack: string(debug.Stack())}
		}
	}()
	return route(ctx, tx, m)
}
