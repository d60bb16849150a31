package scenario

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
	"github.com/outboxgen/outboxgen/internal/testenv/postgresenv"
)

// newLab returns a lab on the server of this test binary.
func newLab(t *testing.T) *lab.Lab {
	t.Helper()
	return &lab.Lab{Server: postgresenv.Shared(t), Quick: true}
}

// newShop returns a database with the shop and the outbox in it.
func newShop(t *testing.T) *lab.Database {
	t.Helper()
	db, err := newLab(t).Database(t.Context(), 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Drop)
	if err := errors.Join(openShop(t.Context(), db), relay.Prepare(t.Context(), db)); err != nil {
		t.Fatal(err)
	}
	return db
}

func TestSalesAreToTheShopsCustomersUnderIDsOfTheirOwn(t *testing.T) {
	t.Parallel()
	seen, buyers := map[uuid.UUID]bool{}, customerIDs()
	for _, o := range sales(1000) {
		if seen[o.OrderID] {
			t.Errorf("order %s is there twice", o.OrderID)
		}
		seen[o.OrderID] = true
		if !slices.Contains(buyers, o.CustomerID) {
			t.Errorf("customer %s is not the shop's", o.CustomerID)
		}
	}
}

func TestEveryVariantRunsTheBusinessTransaction(t *testing.T) {
	t.Parallel()
	db := newShop(t)
	variants := []*variant{
		oneByOne(noEvent), oneByOne(relay.Enqueue), pipelined(nothingQueued),
		pipelined(relay.Queue),
	}
	each, err := takeTurns(t.Context(), db, variants, 2, 5)
	if err != nil {
		t.Fatal(err)
	}
	if each != 15 {
		t.Errorf("each variant ran %d transactions, want 15", each)
	}
	for i, v := range variants {
		if len(v.p50) != 2 || v.p50.Min() <= 0 {
			t.Errorf("variant %d has the medians %v, want those of two rounds", i, v.p50)
		}
	}
	if err := errors.Join(expectRows(t.Context(), db, "orders", 60),
		expectRows(t.Context(), db, "outbox", 30)); err != nil {
		t.Error(err)
	}
	var charged int
	if err := db.QueryRow(t.Context(),
		"SELECT sum(orders) FROM customer").Scan(&charged); err != nil || charged != 60 {
		t.Errorf("customers were charged for %d orders (%v), want 60", charged, err)
	}
}

func TestOverheadIsInPerCentOfTheSameRound(t *testing.T) {
	t.Parallel()
	got := overhead(measure.Series{1.5, 3}, measure.Series{1, 4})
	if want := (measure.Series{50, -25}); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestServicesEnqueueWhatTheySay(t *testing.T) {
	t.Parallel()
	for _, s := range services {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			if rate, err := s.measure(t.Context(), newLab(t), 3, 50); err != nil || rate <= 0 {
				t.Errorf("got %v transactions/s, error %v", rate, err)
			}
		})
	}
}

func TestServiceThatEnqueuesTooFewEventsFails(t *testing.T) {
	t.Parallel()
	s := service{name: "forgetful", events: 1, enqueue: noEvent, beside: nobody}
	if _, err := s.measure(t.Context(), newLab(t), 3, 50); err == nil {
		t.Error("got no error")
	}
}

func TestCopiedRowsEqualEnqueuedOnes(t *testing.T) {
	t.Parallel()
	db := newShop(t)
	orders := rival.Uniform(20).Orders()
	rows, err := encode(t.Context(), orders)
	if err != nil {
		t.Fatal(err)
	}
	written := func(insert func(pgx.Tx) error) (all []string) {
		t.Helper()
		if err := pgx.BeginFunc(t.Context(), db, insert); err != nil {
			t.Fatal(err)
		}
		result, err := db.Query(t.Context(), `
			WITH gone AS (DELETE FROM outbox RETURNING *)
			SELECT (to_jsonb(gone) - '{id,xid,seq,created_at}'::text[])::text
			FROM gone ORDER BY seq`)
		if err == nil {
			all, err = pgx.CollectRows(result, pgx.RowTo[string])
		}
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	copied := written(func(tx pgx.Tx) error { return copyRows(t.Context(), tx, rows) })
	enqueued := written(func(tx pgx.Tx) error { return rival.EnqueueAll(t.Context(), tx, orders) })
	if len(copied) != len(orders) || !slices.Equal(copied, enqueued) {
		t.Errorf("got %v, want %v", copied, enqueued)
	}
}

func TestFollowSeesEachEvent(t *testing.T) {
	t.Parallel()
	for _, c := range []rival.Follower{relay, rival.Elsewhere{}} {
		t.Run(c.Name(), func(t *testing.T) {
			t.Parallel()
			trips, err := follow(t.Context(), newLab(t), c, 20)
			if err != nil {
				t.Fatal(err)
			}
			if len(trips) != 20 {
				t.Errorf("got %d trips, want those of 20 events", len(trips))
			}
			for _, trip := range trips {
				if trip.committed.Before(trip.sent) || trip.published.Before(trip.sent) {
					t.Errorf("sent at %v, committed at %v, published at %v", trip.sent,
						trip.committed, trip.published)
				}
			}
		})
	}
}

func TestJournalCountsSurplusAndMissingPublishes(t *testing.T) {
	t.Parallel()
	orders := sales(2)
	j := newJournal(orders)
	j.publish(orders[0].OrderID)
	j.publish(orders[0].OrderID)
	j.publish(uuid.New())
	if j.surplus != 2 {
		t.Errorf("got a surplus of %d, want 2: one was published twice, one is unknown", j.surplus)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.await(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("one is missing: got %v, want %v", err, context.Canceled)
	}
	j.publish(orders[1].OrderID)
	if err := j.await(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestDelayOfAnEventThatIsPublishedBeforeItsCommitReturnsIsNone(t *testing.T) {
	t.Parallel()
	start := time.Now()
	after := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	var d delays
	d.add([]trip{
		{sent: start, committed: after(5), published: after(3)},
		{sent: start, committed: after(5), published: after(5)},
		{sent: start, committed: after(5), published: after(9)},
	})
	if d.p50.Median() != 0 || d.p99.Median() != 4 || d.sent.Median() != 5 {
		t.Errorf("got p50 %v, p99 %v, sent p50 %v, want 0, 4, 5", d.p50, d.p99, d.sent)
	}
}

func TestAlongside(t *testing.T) {
	t.Parallel()
	broken, failed := errors.New("broken"), errors.New("failed")
	nothing := func(context.Context) error { return nil }
	untilEnd := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	cases := map[string]struct {
		beside companion
		f      func(context.Context) error
		want   error
	}{
		"both end well": {nobody, nothing, nil},
		"the companion says that it was told to end": {
			func(ctx context.Context, _ *lab.Database, ready func(), _ func(uuid.UUID)) error {
				ready()
				return untilEnd(ctx)
			}, nothing, nil,
		},
		"f fails": {nobody, func(context.Context) error { return failed }, failed},
		"the companion never begins": {
			func(context.Context, *lab.Database, func(), func(uuid.UUID)) error {
				return broken
			}, nothing, broken,
		},
		"the companion breaks": {
			func(_ context.Context, _ *lab.Database, ready func(), _ func(uuid.UUID)) error {
				ready()
				return broken
			}, untilEnd, broken,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := alongside(t.Context(), nil, c.beside, nil, c.f); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
