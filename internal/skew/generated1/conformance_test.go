package generated1_test

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/outboxgen/outboxgen/internal/skew"
	"github.com/outboxgen/outboxgen/internal/skew/generated1/plain/events"
	prefixed "github.com/outboxgen/outboxgen/internal/skew/generated1/prefixed/events"
	"github.com/outboxgen/outboxgen/internal/testenv/postgresenv"
	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
	"github.com/outboxgen/outboxgen/runtime/outboxtest/conformance"
)

// store is what generated stores are.
type store interface {
	conformance.Store
	inbox.Store[pgx.Tx]
}

func TestFrozenCodeStaysAsItWasGenerated(t *testing.T) { skew.Unchanged(t, ".") }

func TestFrozenStoreOnItsOwnTables(t *testing.T) {
	conformance.TestStore(t, func(t *testing.T) conformance.Harness {
		pool := ownTables(t)
		return harness(pool, events.NewStore(pool))
	})
}

func TestFrozenStoreOnTodaysTables(t *testing.T) {
	conformance.TestStore(t, func(t *testing.T) conformance.Harness {
		pool := todaysTables(t)
		return harness(pool, prefixed.NewStore(pool))
	})
}

func TestFrozenInboxOnItsOwnTables(t *testing.T) {
	conformance.TestInbox(t, func(t *testing.T) conformance.InboxHarness[pgx.Tx] {
		return inboxHarness(events.NewStore(ownTables(t)))
	})
}

func TestFrozenInboxOnTodaysTables(t *testing.T) {
	conformance.TestInbox(t, func(t *testing.T) conformance.InboxHarness[pgx.Tx] {
		return inboxHarness(prefixed.NewStore(todaysTables(t)))
	})
}

func ownTables(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := open(t)
	if err := skew.Frozen(t.Context(), pool, os.DirFS("plain/migrations")); err != nil {
		t.Fatal(err)
	}
	return pool
}

func todaysTables(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := open(t)
	if err := skew.Today(t.Context(), pool, "prefixed/outbox.yaml"); err != nil {
		t.Fatal(err)
	}
	return pool
}

// open returns a pool on a database of the test's own, for tests that hold many transactions open.
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

func harness(pool *pgxpool.Pool, s store) conformance.Harness {
	return conformance.Harness{
		Store: s,
		Begin: func(ctx context.Context) (conformance.Tx, error) {
			tx, err := pool.Begin(ctx)
			return business{tx, s}, err
		},
	}
}

func inboxHarness(s store) conformance.InboxHarness[pgx.Tx] {
	return conformance.InboxHarness[pgx.Tx]{
		Store:  s,
		Outbox: s,
		Enqueue: func(
			ctx context.Context, tx pgx.Tx, e outboxtest.Event, opts ...outbox.EnqueueOption,
		) (outbox.ID, error) {
			ids, err := business{tx, s}.Enqueue(ctx, []outbox.Event{e}, opts...)
			if err != nil {
				return outbox.ID{}, err
			}
			return ids[0], nil
		},
		Break: func(tx pgx.Tx) { _ = tx.Conn().Close(context.Background()) },
	}
}

// business is a business transaction.
type business struct {
	pgx.Tx
	store store
}

// Enqueue enqueues one event by its own function, several in one call, and those of the prefixed
// catalogue in a batch.
func (tx business) Enqueue(
	ctx context.Context, list []outbox.Event, opts ...outbox.EnqueueOption,
) ([]outbox.ID, error) {
	if s, ok := tx.store.(*prefixed.Store); ok {
		return queue(ctx, tx, s, list, opts)
	}
	s := tx.store.(*events.Store)
	if len(list) != 1 {
		return s.Enqueue(ctx, tx, plain(list)...)
	}
	var id outbox.ID
	var err error
	switch e := plain(list)[0].(type) {
	case events.ThingHappenedV1:
		id, err = s.EnqueueThingHappenedV1(ctx, tx, e, opts...)
	case events.StrayHappenedV1:
		id, err = s.EnqueueStrayHappenedV1(ctx, tx, e, opts...)
	}
	return []outbox.ID{id}, err
}

func plain(list []outbox.Event) []events.Event {
	converted := make([]events.Event, len(list))
	for i, e := range list {
		if e := e.(outboxtest.Event); e.Entity == "" {
			converted[i] = events.StrayHappenedV1(e)
		} else {
			converted[i] = events.ThingHappenedV1(e)
		}
	}
	return converted
}

func queue(
	ctx context.Context, tx pgx.Tx, s *prefixed.Store, list []outbox.Event,
	opts []outbox.EnqueueOption,
) (ids []outbox.ID, err error) {
	var batch pgx.Batch
	for _, e := range list {
		var id outbox.ID
		if e := e.(outboxtest.Event); e.Entity == "" {
			id, err = s.QueueStrayHappenedV1(ctx, &batch, prefixed.StrayHappenedV1(e), opts...)
		} else {
			id, err = s.QueueThingHappenedV1(ctx, &batch, prefixed.ThingHappenedV1(e), opts...)
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, tx.SendBatch(ctx, &batch).Close()
}
