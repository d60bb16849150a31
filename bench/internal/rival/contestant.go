// Package rival has the relay and its alternatives, behind a few methods that all of them have.
package rival

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
)

// Contestant is an outbox: it keeps events in a database, and publishes them.
type Contestant interface {
	// Name is the contestant's name in a table, such as "Watermill, queue schema, batch 1000".
	Name() string
	// Prepare creates its tables in an empty database.
	Prepare(ctx context.Context, db *lab.Database) error
	// Fill commits the events of a workload.
	Fill(ctx context.Context, db *lab.Database, orders []Order) error
	// Drain publishes n events, which must be all that is pending, to a publisher that only counts,
	// and stops. It returns the time from its start until all of them were recorded as published;
	// the time to stop is not included. It returns an error if another number was published, or if
	// an event is left. It may wait for a missing event until ctx ends.
	Drain(ctx context.Context, db *lab.Database, n int) (time.Duration, error)
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
	Enqueuer
	// Follow publishes until ctx ends. It calls ready once, when it has begun, and published with
	// the OrderID of each event that it publishes.
	Follow(ctx context.Context, db *lab.Database, ready func(), published func(uuid.UUID)) error
}

// stopLimit is the time that a contestant has to stop.
const stopLimit = time.Minute

// firstWarning keeps the first log record of level warning or above, and drops the rest. A
// contestant that recovers from trouble is slower for it, which its rate alone would not show.
type firstWarning struct {
	mu     sync.Mutex
	record string
}

func (w *firstWarning) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// Write implements io.Writer. The handler calls it once for each record.
func (w *firstWarning) Write(record []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.record == "" {
		w.record = strings.TrimSpace(string(record))
	}
	return len(record), nil
}

// err returns that record as an error, or nil if there was none.
func (w *firstWarning) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.record == "" {
		return nil
	}
	return errors.New("bench: the contestant warned: " + w.record)
}

// noneLeft returns an error if the query counts pending events.
func noneLeft(ctx context.Context, db *lab.Database, query string) error {
	var left int
	if err := db.QueryRow(ctx, query).Scan(&left); err != nil {
		return fmt.Errorf("bench: count what is left: %w", err)
	}
	if left != 0 {
		return fmt.Errorf("bench: %d events are left", left)
	}
	return nil
}
