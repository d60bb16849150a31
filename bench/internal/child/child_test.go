package child_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/outboxgen/outboxgen/bench"
	"github.com/outboxgen/outboxgen/bench/events"
	"github.com/outboxgen/outboxgen/bench/internal/child"
	"github.com/outboxgen/outboxgen/internal/testenv/postgresenv"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

func TestMain(m *testing.M) {
	child.Main()
	os.Exit(m.Run())
}

// patience is the time limit of a test.
const patience = 5 * time.Minute

// The relays balance their shards within a third of the lease, which none of them may lose however
// busy the machine is.
var config = outbox.Config{Lease: 20 * time.Second}

func newOutbox(t *testing.T) (context.Context, *pgxpool.Pool, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	db := postgresenv.New(t)
	pool, err := pgxpool.New(ctx, db.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(ctx, bench.Migration); err != nil {
		t.Fatal(err)
	}
	return ctx, pool, db.URL
}

// enqueue commits n events and returns their ids.
func enqueue(ctx context.Context, pool *pgxpool.Pool, n int) (ids []uuid.UUID, err error) {
	orders := make([]events.Event, n)
	for i := range orders {
		orders[i] = events.OrderPlacedV1{
			OrderID: uuid.New(), CustomerID: uuid.New(), Total: events.Money{Currency: "EUR"},
			PlacedAt: time.Now(),
		}
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		ids, err = events.NewStore(pool).Enqueue(ctx, tx, orders...)
		return err
	})
	return ids, err
}

func settled(n int) func([]child.Progress) bool {
	return func(all []child.Progress) bool {
		var sum int64
		for _, p := range all {
			sum += p.Settled
		}
		return sum == int64(n)
	}
}

func TestAFleetSharesTheShardsAndReportsEveryPublish(t *testing.T) {
	t.Parallel()
	ctx, pool, url := newOutbox(t)
	var want []uuid.UUID
	reports, err := child.Run(ctx, 2, url, config, func(f *child.Fleet) error {
		err := f.Await(ctx, func(all []child.Progress) bool {
			return all[0].Shards == events.Shards/2 && all[1].Shards == events.Shards/2
		})
		if err != nil {
			return err
		}
		if want, err = enqueue(ctx, pool, 500); err != nil {
			return err
		}
		return f.Await(ctx, settled(len(want)))
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []uuid.UUID
	for _, r := range reports {
		if len(r.IDs) == 0 || r.Heap == 0 || r.Allocated == 0 ||
			runtime.GOOS == "linux" && r.Peak == 0 {
			t.Errorf("a relay came to %d events, %d B at most, a heap of %d B, %d B allocated",
				len(r.IDs), r.Peak, r.Heap, r.Allocated)
		}
		got = append(got, r.IDs...)
	}
	for _, ids := range [][]uuid.UUID{got, want} {
		slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %d events, want %d, each of them once", len(got), len(want))
	}
}

func TestAFailureKillsTheFleet(t *testing.T) {
	t.Parallel()
	ctx, pool, url := newOutbox(t)
	failure := errors.New("failure")
	_, err := child.Run(ctx, 2, url, config, func(f *child.Fleet) error {
		if err := f.Await(ctx, func(all []child.Progress) bool {
			return all[0].Shards > 0 && all[1].Shards > 0
		}); err != nil {
			return err
		}
		return failure
	})
	if !errors.Is(err, failure) {
		t.Fatalf("got %v, want %v", err, failure)
	}
	var relays int
	if err := pool.QueryRow(ctx, "SELECT count(*) FROM outbox_relay").Scan(&relays); err != nil ||
		relays != 2 {
		t.Errorf("%d relays, and error %v, want 2 that were killed before they could leave", relays,
			err)
	}
}

func TestAChildThatCannotWorkIsAnError(t *testing.T) {
	t.Parallel()
	ctx, _, url := newOutbox(t)
	_, err := child.Run(ctx, 1, url, outbox.Config{Lease: time.Millisecond},
		func(f *child.Fleet) error {
			return f.Await(ctx, settled(1))
		})
	if err == nil || !strings.Contains(err.Error(), "ended too early") {
		t.Errorf("got %v, want that a child ended too early", err)
	}
}

func TestRecordsAreRemoved(t *testing.T) {
	ctx, _, url := newOutbox(t) // first, since the server has a temporary directory of its own
	t.Setenv("TMPDIR", t.TempDir())
	if _, err := child.Run(ctx, 1, url, config, func(*child.Fleet) error {
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "outboxgen-bench-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
