package rival

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
)

// Relaxed is a contestant whose commits do not wait for the disk while it drains, as the relay's
// settles never do: what a crash of the server undoes had been published, and is published again.
type Relaxed struct{ Contestant }

// Name implements Contestant.
func (r Relaxed) Name() string { return r.Contestant.Name() + ", synchronous_commit off" }

// Drain implements Contestant. It replaces all connections of the pool before the time starts, and
// leaves the setting in the database.
func (r Relaxed) Drain(ctx context.Context, db *lab.Database, n int) (time.Duration, error) {
	name := pgx.Identifier{db.Config().ConnConfig.Database}.Sanitize()
	if _, err := db.Exec(ctx, "ALTER DATABASE "+name+" SET synchronous_commit = off"); err != nil {
		return 0, fmt.Errorf("bench: relax the database: %w", err)
	}
	// The setting applies to new connections only.
	db.Reset()
	if err := db.Warm(ctx); err != nil {
		return 0, err
	}
	return r.Contestant.Drain(ctx, db, n)
}
