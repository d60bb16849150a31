package failures_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// role makes a role that ends with the test. Roles belong to the whole server, so its name is its own.
func (w *world) role() string {
	w.Helper()
	role := "outboxgen_test_" + strings.ToLower(rand.Text()[:12])
	w.exec(`CREATE ROLE ` + role)
	w.Cleanup(func() {
		_, err := w.pool.Exec(context.WithoutCancel(w.Context()), `DROP OWNED BY `+role+`; DROP ROLE `+role)
		w.must(err)
	})
	return role
}

func manyThings(n int) []outbox.Event {
	list := make([]outbox.Event, n)
	for i := range list {
		list[i] = thing(fmt.Sprint("key ", i%3), i)
	}
	return list
}

// TestHoweverManyEventsAreEnqueuedTheirRowsAreTheSame compares what is inserted with what is copied: a few events and many take
// different ways into the table.
func TestHoweverManyEventsAreEnqueuedTheirRowsAreTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	list := manyThings(2 * outbox.Many)
	ctx := outbox.ContextWithTraceparent(t.Context(), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	rows := map[string]string{}
	for name, split := range map[string]int{"inserted": outbox.Many - 1, "copied": len(list)} {
		tx := w.begin()
		for from := 0; from < len(list); from += split {
			part := list[from:min(from+split, len(list))]
			ids, err := events.Enqueue(ctx, tx, part...)
			w.must(err)
			w.equal("ids", len(ids), len(part))
		}
		var text string
		w.must(tx.QueryRow(t.Context(), `
			SELECT string_agg(concat_ws(' ', shard, type, version, topic, key, convert_from(payload, 'UTF8'), content_type, headers,
				causation_id, attempts, interrupted, available_at, last_error, xid = pg_current_xact_id(),
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
	for _, n := range []int{1, 2, outbox.Many} {
		tx := w.begin()
		_, err := tx.Exec(t.Context(), `SET LOCAL ROLE `+role)
		w.must(err)
		_, err = events.Enqueue(t.Context(), tx, manyThings(n)...)
		w.must(err)
		w.must(tx.Commit(t.Context()))
	}
	w.equal("pending", w.pending(), 3+outbox.Many)
}
