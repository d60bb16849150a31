// Package rival has the relay and what one would take instead of it, each behind the same few
// methods.
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
	// Name says what it is in a table: "River", "Watermill, queue schema, batch 1000".
	Name() string
	// Prepare makes its tables in an empty database.
	Prepare(ctx context.Context, db *lab.Database) error
	// Fill commits the events of a workload.
	Fill(ctx context.Context, db *lab.Database, orders []Order) error
	// Drain publishes n events, which are all that is pending, to a publisher that does nothing but
	// count, and stops. It returns the time from its beginning until all of them were recorded as
	// published; what it takes to stop after that is not held against a contestant. Another number
	// of publishes is an error, and so is an event that is left over. It may wait for an event that
	// is missing until ctx ends.
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

// stopLimit is how long a contestant may take to stop.
const stopLimit = time.Minute

// firstWarning keeps the first record of a log that is a warning or worse, and drops the rest: a
// contestant that overcomes trouble is slower for it, which its rate would not tell.
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

// err returns the record as an error, or nil if there was none.
func (w *firstWarning) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.record == "" {
		return nil
	}
	return errors.New("bench: the contestant warned: " + w.record)
}

// noneLeft is an error unless a query counts no event that is still pending.
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
