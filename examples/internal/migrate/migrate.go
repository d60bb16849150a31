// Package migrate applies generated migrations, as the teams that own the examples would do.
package migrate

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

// Goose applies the migrations of a directory in goose's format.
func Goose(ctx context.Context, pool *pgxpool.Pool, migrations fs.FS) error {
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	_, err = provider.Up(ctx)
	return err
}

// Plain applies the SQL files of a directory in the order of their names.
func Plain(ctx context.Context, pool *pgxpool.Pool, migrations fs.FS) error {
	names, err := fs.Glob(migrations, "*.sql")
	if err != nil {
		return err
	}
	for _, name := range names {
		sql, err := fs.ReadFile(migrations, name)
		if err != nil {
			return err
		}
		if _, err := pool.Exec(ctx, string(sql)); err != nil {
			return fmt.Errorf("migrate: %s: %w", name, err)
		}
	}
	return nil
}
