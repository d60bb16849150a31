// Package rival has the relay and what one would take instead of it, each behind the same few methods.
package rival

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
)

// Contestant is an outbox: it keeps events in a database, and publishes them.
type Contestant interface {
	// Name says what it is in a table: "River", "Watermill, queue schema, batch 1,000".
	Name() string
	// Prepare makes its tables in an empty database.
	Prepare(ctx context.Context, db *lab.Database) error
	// Fill commits the events of a workload.
	Fill(ctx context.Context, db *lab.Database, orders []Order) error
	// Drain publishes n events, which are all that is pending, to a publisher that does nothing but count, and returns once
	// it has recorded of all of them that they are published. Another number of publishes is an error.
	Drain(ctx context.Context, db *lab.Database, n int) error
}

// Enqueuer enqueues an event in a business transaction.
type Enqueuer interface {
	Name() string
	Prepare(ctx context.Context, db *lab.Database) error
	// Enqueue adds an event to tx.
	Enqueue(ctx context.Context, tx pgx.Tx, o Order) error
}

// Follower publishes events as they are committed.
type Follower interface {
	Name() string
	Prepare(ctx context.Context, db *lab.Database) error
	Enqueue(ctx context.Context, tx pgx.Tx, o Order) error
	// Follow publishes until ctx ends. It calls ready once, when it has begun, and published with the OrderID of each event that it
	// publishes.
	Follow(ctx context.Context, db *lab.Database, ready func(), published func(uuid.UUID)) error
}
