package rival

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
)

// Stream is stream for tests.
type Stream = stream

// OnStream is onStream for tests.
var OnStream = onStream

// DrainTo is drainTo for tests.
func DrainTo(
	ctx context.Context, c Streamer, db *lab.Database, n int, s *Stream,
) (time.Duration, error) {
	return c.drainTo(ctx, db, n, s)
}

// Reconfigure changes the stream.
func (s *Stream) Reconfigure(ctx context.Context, config jetstream.StreamConfig) error {
	_, err := s.js.UpdateStream(ctx, config)
	return err
}

// PublishAsync is publishAsync for tests.
func (s *Stream) PublishAsync(ctx context.Context, orders []Order) (time.Duration, error) {
	return s.publishAsync(ctx, orders)
}
