package conformance_test

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
	prefixed "github.com/outboxgen/outboxgen/examples/conformance/prefixed/events"
	"github.com/outboxgen/outboxgen/examples/internal/migrate"
	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
	"github.com/outboxgen/outboxgen/runtime/outboxtest/conformance"
)

// store is what all generated stores have in common.
type store interface {
	conformance.Store
	inbox.Store[pgx.Tx]
}

func TestPlainInbox(t *testing.T) {
	conformance.TestInbox(t, func(t *testing.T) conformance.InboxHarness[pgx.Tx] {
		s := events.NewStore(openPlain(t))
		return inboxHarness(s, func(tx pgx.Tx) conformance.Tx { return plainTx{tx, s} })
	})
}

func TestPrefixedInbox(t *testing.T) {
	conformance.TestInbox(t, func(t *testing.T) conformance.InboxHarness[pgx.Tx] {
		pool := open(t)
		if err := migrate.Goose(t.Context(), pool, os.DirFS("prefixed/migrations")); err != nil {
			t.Fatal(err)
		}
		s := prefixed.NewStore(pool)
		return inboxHarness(s, func(tx pgx.Tx) conformance.Tx { return prefixedTx{tx, s} })
	})
}

func inboxHarness(s store, wrap func(pgx.Tx) conformance.Tx) conformance.InboxHarness[pgx.Tx] {
	return conformance.InboxHarness[pgx.Tx]{
		Store:  s,
		Outbox: s,
		Enqueue: func(ctx context.Context, tx pgx.Tx, e outboxtest.Event,
			opts ...outbox.EnqueueOption) (outbox.ID, error) {
			ids, err := wrap(tx).Enqueue(ctx, []outbox.Event{e}, opts...)
			if err != nil {
				return outbox.ID{}, err
			}
			return ids[0], nil
		},
		Break: func(tx pgx.Tx) { _ = tx.Conn().Close(context.Background()) },
	}
}
