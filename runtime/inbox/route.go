package inbox

import (
	"context"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/payload"
)

// Route handles the messages of one event type inside tx: it decodes the payload and calls the
// consumer.
type Route[Tx any] func(ctx context.Context, tx Tx, m *outbox.Message) error

// RouteTo returns a route that decodes the payload as an E, a generated payload struct, and hands
// it to handle. An event that handle enqueues has to carry outbox.WithCausation(m.ID), so that a
// duplicate of m makes it due.
func RouteTo[Tx, E any](
	handle func(ctx context.Context, tx Tx, m *outbox.Message, e E) error,
) Route[Tx] {
	return func(ctx context.Context, tx Tx, m *outbox.Message) error {
		var e E
		if err := payload.Unmarshal(m.Payload, &e); err != nil {
			return err
		}
		return handle(ctx, tx, m, e)
	}
}
