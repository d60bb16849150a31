// Package conformance runs the suites of outboxtest/conformance on generated stores and a real
// PostgreSQL: one store with the defaults, one with a schema, a prefix and a retention.
package conformance_test

//go:generate go run github.com/outboxgen/outboxgen/cmd/outboxgen generate plain/outbox.yaml
//go:generate go run github.com/outboxgen/outboxgen/cmd/outboxgen generate prefixed/outbox.yaml

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
	prefixed "github.com/outboxgen/outboxgen/examples/conformance/prefixed/events"
	"github.com/outboxgen/outboxgen/examples/internal/migrate"
	"github.com/outboxgen/outboxgen/internal/testenv/postgresenv"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
	"github.com/outboxgen/outboxgen/runtime/outboxtest/conformance"
)

func TestPlainStore(t *testing.T) {
	conformance.TestStore(t, func(t *testing.T) conformance.Harness {
		pool := openPlain(t)
		s := events.NewStore(pool)
		return harness(pool, s, func(tx pgx.Tx) conformance.Tx { return plainTx{tx, s} })
	})
}

func TestPrefixedStore(t *testing.T) {
	conformance.TestStore(t, func(t *testing.T) conformance.Harness {
		pool := open(t)
		if err := migrate.Goose(t.Context(), pool, os.DirFS("prefixed/migrations")); err != nil {
			t.Fatal(err)
		}
		s := prefixed.NewStore(pool)
		return harness(pool, s, func(tx pgx.Tx) conformance.Tx { return prefixedTx{tx, s} })
	})
}

// open returns a pool on a database of the test's own, for tests that have many transactions open
// at once.
func open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(postgresenv.New(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 50
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// openPlain returns a database with the tables of the plain catalogue.
func openPlain(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := open(t)
	if err := migrate.Plain(t.Context(), pool, os.DirFS("plain/migrations")); err != nil {
		t.Fatal(err)
	}
	return pool
}

func harness(
	pool *pgxpool.Pool, store conformance.Store, wrap func(pgx.Tx) conformance.Tx,
) conformance.Harness {
	return conformance.Harness{
		Store: store,
		Begin: func(ctx context.Context) (conformance.Tx, error) {
			tx, err := pool.Begin(ctx)
			return wrap(tx), err
		},
	}
}

type plainTx struct {
	pgx.Tx
	store *events.Store
}

func (tx plainTx) Enqueue(
	ctx context.Context, list []outbox.Event, opts ...outbox.EnqueueOption,
) ([]outbox.ID, error) {
	converted := make([]events.Event, len(list))
	for i, e := range list {
		switch e := e.(outboxtest.Event); {
		case e.Entity == "":
			converted[i] = events.StrayHappenedV1(e)
		default:
			converted[i] = events.ThingHappenedV1(e)
		}
	}
	if len(list) != 1 {
		return tx.store.Enqueue(ctx, tx, converted...)
	}
	var id outbox.ID
	var err error
	switch e := converted[0].(type) {
	case events.ThingHappenedV1:
		id, err = tx.store.EnqueueThingHappenedV1(ctx, tx, e, opts...)
	case events.StrayHappenedV1:
		id, err = tx.store.EnqueueStrayHappenedV1(ctx, tx, e, opts...)
	}
	return []outbox.ID{id}, err
}

type prefixedTx struct {
	pgx.Tx
	store *prefixed.Store
}

// Enqueue adds events to a batch, as if business statements were in it, too; a list of events is
// enqueued by one call instead.
func (tx prefixedTx) Enqueue(
	ctx context.Context, list []outbox.Event, opts ...outbox.EnqueueOption,
) ([]outbox.ID, error) {
	var batch pgx.Batch
	var ids []outbox.ID
	for _, e := range list {
		var id outbox.ID
		var err error
		switch e := e.(outboxtest.Event); {
		case e.Entity == "":
			id, err = tx.store.QueueStrayHappenedV1(ctx, &batch, prefixed.StrayHappenedV1(e),
				opts...)
		default:
			id, err = tx.store.QueueThingHappenedV1(ctx, &batch, prefixed.ThingHappenedV1(e),
				opts...)
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, tx.SendBatch(ctx, &batch).Close()
}
