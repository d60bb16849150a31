package scenario

import (
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// newConsumer returns a consumer's database with n ids in the inbox.
func newConsumer(t *testing.T, n int) *lab.Database {
	t.Helper()
	db, err := newLab(t).Database(t.Context(), consumers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Drop)
	if err := prepareConsumer(t.Context(), db, n); err != nil {
		t.Fatal(err)
	}
	return db
}

func TestTheInboxIsFullOfIDsAsTheOutboxMakesThem(t *testing.T) {
	t.Parallel()
	db := newConsumer(t, 1000)
	rows, err := db.Query(t.Context(), "SELECT event_id FROM inbox ORDER BY handled_at")
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		t.Fatal(err)
	}
	compare := func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }
	if len(ids) != 1000 || !slices.IsSortedFunc(ids, compare) {
		t.Errorf("got %d ids, sorted by time: %v; want 1000 that are", len(ids),
			slices.IsSortedFunc(ids, compare))
	}
	for _, id := range ids {
		if id.Version() != 7 || id.Variant() != uuid.RFC4122 {
			t.Fatalf("%v is of version %v and variant %v", id, id.Version(), id.Variant())
		}
	}
	if next := uuid.Must(uuid.NewV7()); compare(ids[len(ids)-1], next) >= 0 {
		t.Errorf("%v stands behind %v, which was made later", ids[len(ids)-1], next)
	}
}

func TestARoundAppliesEachMessageOnceWithAnInbox(t *testing.T) {
	t.Parallel()
	db := newConsumer(t, 10)
	const n = turn + 500
	d, err := deliverRound(t.Context(), db, rival.Uniform(n).Orders())
	if err != nil || d.with <= 0 || d.without <= 0 || d.again <= 0 {
		t.Errorf("got %+v and error %v", d, err)
	}
	if err := expectRows(t.Context(), db, "inbox", 10+n); err != nil {
		t.Error(err)
	}
}

func TestMessagesKeepToTheirWindow(t *testing.T) {
	t.Parallel()
	d, err := newDelivery(t.Context(), nil, rival.Uniform(3*deliveryWindow).Orders())
	if err != nil {
		t.Fatal(err)
	}
	byID := func(a, b outbox.Message) int { return slices.Compare(a.ID[:], b.ID[:]) }
	var last outbox.Message
	for window := range slices.Chunk(d.messages, deliveryWindow) {
		if slices.IsSortedFunc(window, byID) {
			t.Error("messages are in order within a window")
		}
		if byID(last, slices.MinFunc(window, byID)) >= 0 {
			t.Error("a message is before its window")
		}
		last = slices.MaxFunc(window, byID)
	}
}
