package rival_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
	"github.com/outboxgen/outboxgen/internal/testenv/postgresenv"
)

var contestants = []rival.Contestant{
	rival.Relay{},
	rival.Relay{Retain: true},
	rival.River{},
	rival.Watermill{Batch: 70},
	rival.Watermill{Batch: 70, Queue: true},
	rival.Forwarder{Batch: 70},
	rival.Claim{},
}

// backlog prepares a database of the test's own in which n events are pending.
func backlog(t *testing.T, c rival.Contestant, n int) *lab.Database {
	t.Helper()
	db := database(t)
	if err := c.Prepare(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if err := c.Fill(t.Context(), db, rival.Uniform(n).Orders()); err != nil {
		t.Fatal(err)
	}
	return db
}

func database(t *testing.T) *lab.Database {
	t.Helper()
	l := &lab.Lab{Server: postgresenv.Shared(t), Quick: true}
	db, err := l.Database(t.Context(), 12)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Drop)
	return db
}

func TestContestantPublishesEachEventOnce(t *testing.T) {
	t.Parallel()
	for _, c := range contestants {
		t.Run(c.Name(), func(t *testing.T) {
			t.Parallel()
			db := backlog(t, c, 300)
			began := time.Now()
			took, err := c.Drain(t.Context(), db, 300)
			if err != nil {
				t.Fatal(err)
			}
			if took <= 0 || took > time.Since(began) {
				t.Errorf("it took %v, want something up to the %v that have passed", took, time.Since(began))
			}
			if _, err := c.Drain(t.Context(), db, 0); err != nil {
				t.Errorf("afterwards: %v, want nothing to be left", err)
			}
		})
	}
}

func TestContestantThatPublishesAnotherNumberIsAnError(t *testing.T) {
	t.Parallel()
	for _, c := range contestants {
		t.Run(c.Name(), func(t *testing.T) {
			t.Parallel()
			for _, pending := range []int{299, 301} {
				db := backlog(t, c, pending)
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				_, err := c.Drain(ctx, db, 300)
				if err == nil {
					t.Fatalf("%d of 300 events were pending: no error", pending)
				}
				if want := "299 events were published, 300 were pending"; pending == 299 && !strings.Contains(err.Error(), want) {
					t.Errorf("error %q, want one that says: %s", err, want)
				}
			}
		})
	}
}

// enqueuers say who publishes what they enqueue.
var enqueuers = []struct {
	rival.Enqueuer
	publisher rival.Contestant
}{
	{rival.Relay{}, rival.Relay{}},
	{rival.Bare{}, rival.Relay{}},
	{rival.River{}, rival.River{}},
	{rival.PromptRiver{}, rival.River{}},
	{rival.Watermill{Batch: 70}, rival.Watermill{Batch: 70}},
	{rival.Watermill{Batch: 70, Queue: true}, rival.Watermill{Batch: 70, Queue: true}},
	{rival.Forwarder{Batch: 70}, rival.Forwarder{Batch: 70}},
}

func TestEventIsThereIfAndOnlyIfItsTransactionCommits(t *testing.T) {
	t.Parallel()
	rollback := errors.New("rollback")
	for _, e := range enqueuers {
		t.Run(e.Name(), func(t *testing.T) {
			t.Parallel()
			db := backlog(t, e.publisher, 0)
			order := rival.Uniform(1).Orders()[0]
			for _, end := range []error{rollback, nil, rollback} {
				err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
					return errors.Join(e.Enqueue(t.Context(), tx, order), end)
				})
				if !errors.Is(err, end) {
					t.Fatalf("error %v, want %v", err, end)
				}
			}
			if _, err := e.publisher.Drain(t.Context(), db, 1); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBareRowsAreThoseOfTheRelay(t *testing.T) {
	t.Parallel()
	db := backlog(t, rival.Relay{}, 0)
	orders := rival.Uniform(100).Orders()
	var bare rival.Bare
	makers := []func(pgx.Tx) error{
		func(tx pgx.Tx) error { return rival.EnqueueAll(t.Context(), tx, orders) },
		func(tx pgx.Tx) error { return bare.Copy(t.Context(), tx, orders) },
		func(tx pgx.Tx) error {
			var errs []error
			for _, o := range orders {
				errs = append(errs, bare.Enqueue(t.Context(), tx, o))
			}
			return errors.Join(errs...)
		},
	}
	var want []map[string]any
	for i, enqueue := range makers {
		got := takeRows(t, db, enqueue)
		if i == 0 {
			want = got
		}
		if len(got) != len(orders) || !reflect.DeepEqual(got, want) {
			t.Errorf("way %d: rows are\n%v\nwant\n%v", i, got, want)
		}
	}
}

// takeRows returns the rows that enqueue makes, without what differs from one enqueue to the next.
func takeRows(t *testing.T, db *lab.Database, enqueue func(pgx.Tx) error) (got []map[string]any) {
	t.Helper()
	if err := pgx.BeginFunc(t.Context(), db, enqueue); err != nil {
		t.Fatal(err)
	}
	rows, err := db.Query(t.Context(), `
		WITH taken AS (DELETE FROM outbox RETURNING *) SELECT * FROM taken ORDER BY seq`)
	if err != nil {
		t.Fatal(err)
	}
	got, err = pgx.CollectRows(rows, pgx.RowToMap)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range got {
		for _, column := range []string{"xid", "seq", "id", "created_at"} {
			delete(row, column)
		}
	}
	return got
}

func TestFollowerPublishesWhatIsCommittedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, f := range []rival.Follower{rival.Relay{}, rival.Elsewhere{}, rival.PromptRiver{}, rival.Forwarder{Batch: 70}} {
		t.Run(f.Name(), func(t *testing.T) {
			t.Parallel()
			db := database(t)
			if err := f.Prepare(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			published := follow(t, f, db)
			for _, o := range rival.Uniform(20).Orders() {
				err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error { return f.Enqueue(t.Context(), tx, o) })
				if err != nil {
					t.Fatal(err)
				}
				select {
				case id := <-published:
					if id != o.OrderID {
						t.Fatalf("order %v was published, want %v", id, o.OrderID)
					}
				case <-time.After(10 * time.Second):
					t.Fatal("the event was not published within 10 s")
				}
			}
		})
	}
}

// follow starts a follower that ends with the test, and returns what it publishes from now on.
func follow(t *testing.T, f rival.Follower, db *lab.Database) <-chan uuid.UUID {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, published, ended := make(chan struct{}), make(chan uuid.UUID, 100), make(chan error, 1)
	go func() {
		ended <- f.Follow(ctx, db, func() { close(ready) }, func(id uuid.UUID) { published <- id })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if len(published) > 0 {
			t.Errorf("%d events were published once more", len(published))
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatalf("it ended before it was ready: %v", err)
	}
	return published
}
