package inbox

import (
	"context"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/payload"
)

// Route handles the messages of one event type inside tx: it decodes the payload and calls the consumer.
type Route[Tx any] func(ctx context.Context, tx Tx, m *outbox.Message) error

// RouteTo returns a route that decodes the payload as an E, a generated payload struct, and hands it to handle. An event that
// handle enqueues has to carry outbox.WithCausation(m.ID), so that a duplicate of m can send it on its way.
func RouteTo[Tx, E any](handle func(ctx context.Context, tx Tx, m *outbox.Message, e E) error) Route[Tx] {
	return func(ctx context.Context, tx Tx, m *outbox.Message) error {
		var e E
		if err := payload.Unmarshal(m.Payload, &e); err != nil {
			return err
		}
		return handle(ctx, tx, m, e)
	}
}

type messageKey struct{}

// MessageFrom returns the message that is being handled: its id, source, headers and time. A handler must not change it.
func MessageFrom(ctx context.Context) (*outbox.Message, bool) {
	m, ok := ctx.Value(messageKey{}).(*outbox.Message)
	return m, ok
}

func contextFor(ctx context.Context, m *outbox.Message) context.Context {
	ctx = outbox.ContextWithTraceparent(ctx, m.Headers[outbox.HeaderTraceparent])
	return context.WithValue(ctx, messageKey{}, m)
}
