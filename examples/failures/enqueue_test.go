package failures_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// role creates a role that is dropped when the test ends. Its name is unique, since roles belong to
// the whole server.
func (w *world) role() string {
	w.Helper()
	role := "outboxgen_test_" + strings.ToLower(rand.Text()[:12])
	w.exec(`CREATE ROLE ` + role)
	w.Cleanup(func() {
		_, err := w.pool.Exec(context.WithoutCancel(w.Context()),
			`DROP OWNED BY `+role+`; DROP ROLE `+role)
		w.must(err)
	})
	return role
}

func manyThings(n int) []events.Event {
	list := make([]events.Event, n)
	for i := range list {
		list[i] = thing(fmt.Sprint("key ", i%3), i)
	}
	return list
}

// TestHoweverManyEventsAreEnqueuedTheirRowsAreTheSame compares inserted rows with copied ones: a
// few events are inserted, many are copied.
func TestHoweverManyEventsAreEnqueuedTheirRowsAreTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	list := manyThings(2 * outbox.CopyThreshold)
	ctx := outbox.ContextWithTraceparent(t.Context(),
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	rows := map[string]string{}
	for name, split := range map[string]int{
		"inserted": outbox.CopyThreshold - 1, "copied": len(list),
	} {
		tx := w.begin()
		for from := 0; from < len(list); from += split {
			part := list[from:min(from+split, len(list))]
			ids, err := w.store.Enqueue(ctx, tx, part...)
			w.must(err)
			w.equal("ids", len(ids), len(part))
		}
		var text string
		w.must(tx.QueryRow(t.Context(), `
			SELECT string_agg(concat_ws(' ', shard, type, version, topic, key,
				convert_from(payload, 'UTF8'), content_type, headers, causation_id, attempts,
				interrupted, available_at, last_error, xid = pg_current_xact_id(),
				uuid_send(id) <> ''), E'\n' ORDER BY seq)
			FROM outbox`).Scan(&text))
		w.must(tx.Rollback(t.Context()))
		rows[name] = text
	}
	w.equal("rows", strings.Count(rows["copied"], "\n")+1, len(list))
	w.equal("what was copied", rows["copied"], rows["inserted"])
}

func TestEnqueueingNothingDoesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.equal("ids", len(w.enqueue()), 0)
	w.equal("pending", w.pending(), 0)
}

func TestEnqueueingNeedsNoRightButToInsert(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	role := w.role()
	w.exec(`GRANT INSERT ON outbox TO ` + role) // as docs/operating.md says
	for _, n := range []int{1, 2, outbox.CopyThreshold} {
		tx := w.begin()
		_, err := tx.Exec(t.Context(), `SET LOCAL ROLE `+role)
		w.must(err)
		_, err = w.store.Enqueue(t.Context(), tx, manyThings(n)...)
		w.must(err)
		w.must(tx.Commit(t.Context()))
	}
	w.equal("pending", w.pending(), 3+outbox.CopyThreshold)
}

// enqueuer enqueues an event within tx. An invalid header makes the event invalid.
type enqueuer func(ctx context.Context, w *world, tx pgx.Tx, header string) error

// enqueuers are all functions that send events to the database. The Queue functions count as such
// together with sending their batch.
var enqueuers = map[string]enqueuer{
	"EnqueueThingHappenedV1": func(ctx context.Context, w *world, tx pgx.Tx, header string) error {
		_, err := w.store.EnqueueThingHappenedV1(ctx, tx, events.ThingHappenedV1{Entity: "a"},
			outbox.WithHeader("x", header))
		return err
	},
	"EnqueueVersions": func(ctx context.Context, w *world, tx pgx.Tx, header string) error {
		_, err := w.store.EnqueueVersions(ctx, tx, []events.Event{thing("a", 1)},
			outbox.WithHeader("x", header))
		return err
	},
	"Enqueue": func(ctx context.Context, w *world, tx pgx.Tx, header string) error {
		_, err := w.store.Enqueue(ctx, tx, thing("a", 1), thing(header, 2))
		return err
	},
	"Enqueue of many": func(ctx context.Context, w *world, tx pgx.Tx, header string) error {
		_, err := w.store.Enqueue(ctx, tx,
			append(manyThings(outbox.CopyThreshold), thing(header, 1))...)
		return err
	},
	"WitnessTx.EnqueueStrayHappenedV1": func(ctx context.Context, _ *world, tx pgx.Tx,
		header string) error {
		handling := events.WitnessTx{Tx: tx, Message: delivery()}
		_, err := handling.EnqueueStrayHappenedV1(ctx, events.StrayHappenedV1{},
			outbox.WithHeader("x", header))
		return err
	},
}

func TestAnInvalidEventLeavesTheTransactionUsable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, enqueue := range enqueuers {
		tx := w.begin()
		var invalid *outbox.EventError
		if err := enqueue(t.Context(), w, tx, "a\x00b"); !errors.As(err, &invalid) {
			t.Errorf("%s of an invalid event: got %v, want an *outbox.EventError", name, err)
		}
		w.must(enqueue(t.Context(), w, tx, "fine"))
		w.must(tx.Commit(t.Context()))
	}
	w.equal("events", w.pending(), 3+2+outbox.CopyThreshold+1)
}

// TestWhatTheDatabaseRefusesIsNoEventError enqueues as a role that has no right to insert.
func TestWhatTheDatabaseRefusesIsNoEventError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	role := w.role()
	for name, enqueue := range enqueuers {
		tx := w.begin()
		_, err := tx.Exec(t.Context(), `SET LOCAL ROLE `+role)
		w.must(err)
		var invalid *outbox.EventError
		err = enqueue(t.Context(), w, tx, "fine")
		if err == nil || errors.As(err, &invalid) {
			t.Errorf("%s: got %v, want an error that is no *outbox.EventError", name, err)
		}
		if _, err := tx.Exec(t.Context(), `SELECT`); err == nil {
			t.Errorf("%s: the transaction goes on after the database has refused", name)
		}
		w.must(tx.Rollback(t.Context()))
	}
}

func TestAnInvalidEventLeavesTheBatchAsItWas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var batch pgx.Batch
	var invalid *outbox.EventError
	if _, err := w.store.QueueThingHappenedV1(t.Context(), &batch,
		events.ThingHappenedV1{}); !errors.As(err, &invalid) {
		t.Errorf("QueueThingHappenedV1: got %v, want an *outbox.EventError", err)
	}
	_, err := w.store.QueueVersions(t.Context(), &batch, manyThings(2))
	if !errors.As(err, &invalid) {
		t.Errorf("QueueVersions: got %v, want an *outbox.EventError", err)
	}
	w.equal("statements", batch.Len(), 0)
}

// TestABatchThatAPoolSendsIsATransactionOfItsOwn shows what the comments of the Queue functions
// say.
func TestABatchThatAPoolSendsIsATransactionOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`CREATE TABLE truth (n integer PRIMARY KEY)`)
	for i, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		pool := connect(t, w.url, func(c *pgxpool.Config) {
			c.ConnConfig.DefaultQueryExecMode = mode
		})
		send := func() error {
			var batch pgx.Batch
			_, err := w.store.QueueThingHappenedV1(t.Context(), &batch,
				events.ThingHappenedV1{Entity: "a"})
			w.must(err)
			batch.Queue(`INSERT INTO truth VALUES ($1)`, i)
			return pool.SendBatch(t.Context(), &batch).Close()
		}
		w.must(send())
		if err := send(); err == nil {
			t.Errorf("%v: a number was inserted twice", mode)
		}
		w.equal("events", w.pending(), i+1)
	}
}

// TestWhatAHandlerEnqueuesHasItsEventAsCause shows that no option of the handler can change the
// cause.
func TestWhatAHandlerEnqueuesHasItsEventAsCause(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tx := w.begin()
	handling := events.WitnessTx{Tx: tx, Message: delivery()}
	opts := make([]outbox.EnqueueOption, 1, 2) // an append could write to the second element
	opts[0] = outbox.WithCausation(outbox.ID{1})
	_, err := handling.EnqueueStrayHappenedV1(t.Context(), events.StrayHappenedV1{}, opts...)
	w.must(err)
	w.must(tx.Commit(t.Context()))
	w.equal("cause", query[string](w, `SELECT causation_id FROM outbox`), handling.Message.ID)
	if opts[:2][1] != nil {
		t.Error("the caller's options were changed")
	}
}
