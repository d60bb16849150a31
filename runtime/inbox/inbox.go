package inbox

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// Handler is what subscribers hand messages to. Where Handle returns nil, the message may be acknowledged; otherwise the broker
// has to deliver it again. *Inbox implements it. It may be called concurrently.
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
	// Ignored: the consumer does not handle events of that type.
	Ignored
)

// String returns the outcome in a word.
func (o Outcome) String() string {
	switch o {
	case Failed:
		return "failed"
	case Applied:
		return "applied"
	case Repeated:
		return "duplicate"
	case Ignored:
		return "ignored"
	default:
		return "unknown"
	}
}

// Stats are the numbers of deliveries since the inbox was made, by what became of them.
type Stats struct {
	Applied   int64
	Duplicate int64
	Ignored   int64
	InFlight  int64
	Failed    int64 // without those in flight
}

// Option changes an Inbox.
type Option func(*options)

type options struct {
	ring func()
}

// WithRing has ring called after each commit that may have enqueued events, or made them due: the relay's doorbell. It must
// not block. Without it the relay finds them at its next poll.
func WithRing(ring func()) Option { return func(o *options) { o.ring = ring } }

// Inbox is one consumer's inbox. It is safe for concurrent use.
type Inbox[Tx any] struct {
	consumer string
	store    Store[Tx]
	routes   map[string]Route[Tx]
	ring     func()

	applied, duplicate, ignored, inFlight, failed atomic.Int64
}

// New returns the inbox of a consumer. Its routes are found by the type that a message carries, such as order.placed@1; New keeps the
// map. It panics where the consumer has no name or an argument is nil, which generated code excludes.
func New[Tx any](consumer string, store Store[Tx], routes map[string]Route[Tx], opts ...Option) *Inbox[Tx] {
	if consumer == "" || store == nil || routes == nil {
		panic(fmt.Sprintf("inbox: New(%q): consumer, store and routes are required", consumer))
	}
	o := options{ring: func() {}}
	for _, opt := range opts {
		opt(&o)
	}
	return &Inbox[Tx]{consumer: consumer, store: store, routes: routes, ring: o.ring}
}

// Consumer returns the consumer's name.
func (i *Inbox[Tx]) Consumer() string { return i.consumer }

// Stats returns the numbers of deliveries so far.
func (i *Inbox[Tx]) Stats() Stats {
	return Stats{
		Applied:   i.applied.Load(),
		Duplicate: i.duplicate.Load(),
		Ignored:   i.ignored.Load(),
		InFlight:  i.inFlight.Load(),
		Failed:    i.failed.Load(),
	}
}

// Handle applies m in a transaction of its own, at most once per event and consumer. The context that a route gets has the
// message's traceparent (outbox.Traceparent) and the message itself (MessageFrom).
//
// Every error is a *HandlerError, and the message has to be delivered again. Nothing has been changed then, unless only the
// answer to the commit was lost: a redelivery is a duplicate in that case. Of what it wraps, errors.Is and errors.As find
//
//   - ErrInFlight: another delivery of the event is being handled at this moment;
//   - *payload.Error: the payload is not what the catalogue says, which no redelivery mends;
//   - *PanicError: the route panicked;
//   - what the route, the store or the database returned.
func (i *Inbox[Tx]) Handle(ctx context.Context, m *outbox.Message) (Outcome, error) {
	route, ok := i.routes[m.TypeName()]
	if !ok {
		i.ignored.Add(1)
		return Ignored, nil
	}
	var claim Claim
	due := 0
	ctx = contextFor(ctx, m)
	err := i.store.InTx(ctx, func(tx Tx) (err error) {
		claim, due, err = i.apply(ctx, tx, route, m)
		return err
	})
	switch {
	case err != nil && claim == InFlight:
		i.inFlight.Add(1)
	case err != nil:
		i.failed.Add(1)
	case claim == Duplicate:
		i.duplicate.Add(1)
		if due > 0 {
			i.ring()
		}
		return Repeated, nil
	default:
		i.applied.Add(1)
		i.ring()
		return Applied, nil
	}
	return Failed, &HandlerError{Consumer: i.consumer, Type: m.TypeName(), ID: m.ID, Err: err}
}

// apply does what happens inside the transaction, and returns how many events it made due.
func (i *Inbox[Tx]) apply(ctx context.Context, tx Tx, route Route[Tx], m *outbox.Message) (Claim, int, error) {
	claim, err := i.store.Claim(ctx, tx, i.consumer, m.ID)
	if err != nil {
		return claim, 0, err
	}
	switch claim {
	case Fresh:
		return claim, 0, call(ctx, tx, route, m)
	case Duplicate:
		due, err := i.store.Redispatch(ctx, tx, m.ID)
		return claim, due, err
	default:
		return InFlight, 0, ErrInFlight
	}
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
