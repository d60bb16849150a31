package skew

import (
	"context"
	"fmt"
	"io/fs"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/sql"
)

// Frozen applies plain migrations as they were committed, in the order of their names.
func Frozen(ctx context.Context, pool *pgxpool.Pool, migrations fs.FS) error {
	names, err := fs.Glob(migrations, "*.sql")
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := fs.ReadFile(migrations, name)
		if err != nil {
			return err
		}
		if _, err := pool.Exec(ctx, string(text)); err != nil {
			return fmt.Errorf("skew: %s: %w", name, err)
		}
	}
	return nil
}

// Today creates the tables that today's generator makes for a catalogue.
func Today(ctx context.Context, pool *pgxpool.Pool, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	c, problems := catalogue.Parse(file, data)
	if c == nil {
		return fmt.Errorf("skew: %s: %v", file, problems)
	}
	migrations, err := sql.Migrations(c.Database)
	if err != nil {
		return err
	}
	for _, m := range migrations {
		text, err := m.Up(c.Database, c.Service, sql.Statement{})
		if err != nil {
			return err
		}
		if _, err := pool.Exec(ctx, string(text)); err != nil {
			return fmt.Errorf("skew: migration %s: %w", m.ID(), err)
		}
	}
	return nil
}
