// Package lab has what benchmarks run on: one PostgreSQL with fsync and synchronous commit on, and
// a database of its own for each measurement.
package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/outboxgen/outboxgen/internal/testenv/postgresenv"
)

// Settings are the server's settings that differ from the defaults. Checkpoints are rare, so that
// hardly any falls into one measurement and not into another: the server makes one if asked to,
// when a database is dropped, after an hour, and when the write-ahead log reaches max_wal_size, as
// it may in a long measurement.
var Settings = map[string]string{
	"shared_buffers":     "1GB",
	"max_wal_size":       "16GB",
	"checkpoint_timeout": "1h",
}

// The time limits for closing a pool and for resetting a setting.
const (
	closeTimeout = 10 * time.Second
	resetTimeout = 10 * time.Second
)

// Lab is a running server, and whether the run is a quick one.
type Lab struct {
	Server *postgresenv.Server
	Quick  bool // fewer events and rounds
}

// Open starts the server. Close ends it.
func Open(ctx context.Context, quick bool) (*Lab, error) {
	server, err := postgresenv.Start(ctx, postgresenv.Config{Durable: true, Settings: Settings})
	if err != nil {
		return nil, err
	}
	l := &Lab{Server: server, Quick: quick}
	if err := l.checkDurable(ctx); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// checkDurable refuses a server that may lose a commit, which would be fast for the wrong reason.
func (l *Lab) checkDurable(ctx context.Context) error {
	db, err := l.Database(ctx, 1)
	if err != nil {
		return err
	}
	defer db.Drop()
	for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		var value string
		if err := db.QueryRow(ctx, "SELECT current_setting($1)", setting).Scan(&value); err != nil {
			return fmt.Errorf("bench: look at %s: %w", setting, err)
		}
		if value != "on" {
			return fmt.Errorf("bench: %s is %s on %s: turn it on, or have the benchmark start a "+
				"server of its own", setting, value, l.Server.Source)
		}
	}
	return nil
}

// Close ends the server and removes its files.
func (l *Lab) Close() error { return l.Server.Stop() }

// Set changes a setting of the server, which must not be a list, until reset is called. Reset
// restores the value that ALTER SYSTEM had set before, since the server may be somebody's own. If
// that fails, it is only logged.
func (l *Lab) Set(ctx context.Context, name, value string) (reset func(), err error) {
	db, err := l.Database(ctx, 1)
	if err != nil {
		return nil, err
	}
	former, err := db.altered(ctx, name)
	if err != nil {
		db.Drop()
		return nil, fmt.Errorf("bench: look at %s: %w", name, err)
	}
	reset = func() {
		defer db.Drop()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resetTimeout)
		defer cancel()
		if err := db.alter(ctx, name, former); err != nil {
			slog.Warn("bench: a setting was not reset", "name", name, "error", err)
		}
	}
	if err := db.alter(ctx, name, &value); err != nil {
		reset()
		return nil, fmt.Errorf("bench: set %s: %w", name, err)
	}
	return reset, nil
}

// altered returns what ALTER SYSTEM has set, or nil.
func (d *Database) altered(ctx context.Context, name string) (value *string, err error) {
	const query = `SELECT max(setting) FROM pg_file_settings
		WHERE name = $1 AND sourcefile LIKE '%postgresql.auto.conf'`
	err = d.QueryRow(ctx, query, name).Scan(&value)
	return value, err
}

// alter sets a setting for the whole server, or resets it if value is nil.
func (d *Database) alter(ctx context.Context, name string, value *string) error {
	change := "ALTER SYSTEM RESET " + pgx.Identifier{name}.Sanitize()
	if value != nil {
		change = "ALTER SYSTEM SET " + pgx.Identifier{name}.Sanitize() + " = '" +
			strings.ReplaceAll(*value, "'", "''") + "'"
	}
	if _, err := d.Exec(ctx, change); err != nil {
		return err
	}
	_, err := d.Exec(ctx, "SELECT pg_reload_conf()")
	return err
}

// Pick returns quick in a quick run, and full otherwise.
func Pick[T any](l *Lab, full, quick T) T {
	if l.Quick {
		return quick
	}
	return full
}

// Database creates an empty database, with a pool of up to conns connections. Drop removes both.
func (l *Lab) Database(ctx context.Context, conns int) (*Database, error) {
	db, err := l.Server.CreateDatabase(ctx)
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(db.URL)
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(conns)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &Database{Pool: pool, URL: db.URL, db: db, server: l.Server}, nil
}

// Database is the database of one measurement.
type Database struct {
	*pgxpool.Pool
	URL    string
	db     postgresenv.Database
	server *postgresenv.Server
}

// Drop closes the pool and removes the database. If that fails, it is only logged, since the
// database is removed with the server in any case.
func (d *Database) Drop() {
	if !closed(d.Pool, closeTimeout) {
		slog.Warn("bench: a pool was not closed", "connections in use", d.Stat().AcquiredConns())
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := d.server.DropDatabase(ctx, d.db); err != nil {
		slog.Warn("bench: a database was left behind", "error", err)
	}
}

// closed closes a pool, and reports whether it has. It does not wait longer than limit for
// connections that were not released.
func closed(pool *pgxpool.Pool, limit time.Duration) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		pool.Close()
	}()
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}

// Analyse makes the server gather statistics, so that it does not begin to do so during a
// measurement.
func (d *Database) Analyse(ctx context.Context) error {
	if _, err := d.Exec(ctx, "ANALYZE"); err != nil {
		return fmt.Errorf("bench: analyse: %w", err)
	}
	return nil
}

// Checkpoint makes a checkpoint, so that the next change to each page writes the whole page to the
// log.
func (d *Database) Checkpoint(ctx context.Context) error {
	if _, err := d.Exec(ctx, "CHECKPOINT"); err != nil {
		return fmt.Errorf("bench: checkpoint: %w", err)
	}
	return nil
}

// WAL returns how many bytes of write-ahead log the server has written since it was created.
func (d *Database) WAL(ctx context.Context) (bytes int64, err error) {
	err = d.QueryRow(ctx,
		"SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint").Scan(&bytes)
	return bytes, err
}
