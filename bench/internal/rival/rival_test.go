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
	rival.River{NoIndex: true},
	rival.Watermill{Batch: 70},
	rival.Watermill{Batch: 70, Queue: true},
	rival.Forwarder{Batch: 70},
	rival.Claim{Workers: 1, Batch: 70},
	rival.Claim{Workers: 2, Batch: 70, Delete: true},
	rival.Relaxed{Contestant: rival.Claim{Workers: 2, Batch: 70}},
	rival.ToJetStream{Streamer: rival.Relay{}},
	rival.ToJetStream{Streamer: rival.River{}},
	rival.ToJetStream{Streamer: rival.Forwarder{Batch: 70}},
}

// patience is the time limit of a test that hangs. It measures nothing.
const patience = 3 * time.Minute

// backlog prepares a database of the test's own with n pending events.
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
				t.Errorf("it took %v, want something up to the %v that have passed", took,
					time.Since(began))
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
			if err := drainUntil(t, c, 301, 3*time.Second); err == nil {
				t.Error("301 events were pending, and 300 were to be: no error")
			}
			// Some contestants wait for the last event until they are told to stop. A busy machine
			// needs longer for the others.
			const want = "299 events were published, 300 were pending"
			err := drainUntil(t, c, 299, 3*time.Second)
			for limit := 10 * time.Second; limit < patience && err != nil &&
				!strings.Contains(err.Error(), want); limit *= 2 {
				err = drainUntil(t, c, 299, limit)
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one that says: %s", err, want)
			}
		})
	}
}

// drainUntil has a contestant drain 300 events within a time limit, although another number is
// pending.
func drainUntil(t *testing.T, c rival.Contestant, pending int, limit time.Duration) error {
	t.Helper()
	db := backlog(t, c, pending)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	_, err := c.Drain(ctx, db, 300)
	return err
}

// recorders say in which table each contestant changes rows when it publishes.
var recorders = []struct {
	rival.Contestant
	table string
}{
	{rival.Relay{}, "outbox"},
	{rival.River{}, "river_job"},
	{rival.Watermill{Batch: 70}, "watermill_offsets_orders"},
	{rival.Watermill{Batch: 70, Queue: true}, "watermill_orders"},
	{rival.Forwarder{Batch: 70}, "watermill_orders"},
	{rival.Claim{Workers: 2, Batch: 70}, "claimed"},
}

func TestTroubleThatAContestantCouldOvercomeIsAnError(t *testing.T) {
	t.Parallel()
	for _, c := range recorders {
		t.Run(c.Name(), func(t *testing.T) {
			t.Parallel()
			db := backlog(t, c, 300)
			failOnce(t, db, c.table)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if _, err := c.Drain(ctx, db, 300); err == nil ||
				!strings.Contains(err.Error(), "only this once") {
				t.Errorf("error %v, want one that tells of the statement that failed", err)
			}
		})
	}
}

// failOnce makes the first statement fail that changes or deletes rows of a table. It uses a
// sequence to remember that, since a rollback does not reset it.
func failOnce(t *testing.T, db *lab.Database, table string) {
	t.Helper()
	_, err := db.Exec(t.Context(), `
		CREATE SEQUENCE statements;
		CREATE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF nextval('statements') = 1 THEN RAISE EXCEPTION 'only this once'; END IF;
			RETURN NULL;
		END $$;
		CREATE TRIGGER fail_once BEFORE UPDATE OR DELETE ON `+table+` EXECUTE FUNCTION fail_once()`)
	if err != nil {
		t.Fatal(err)
	}
}

func TestRelaxedDrainsWithSynchronousCommitOffOnAWarmPool(t *testing.T) {
	t.Parallel()
	inner := &inspected{Contestant: rival.Claim{Workers: 1, Batch: 70}}
	c := rival.Relaxed{Contestant: inner}
	if want := inner.Name() + ", synchronous_commit off"; c.Name() != want {
		t.Errorf("its name is %q, want %q", c.Name(), want)
	}
	db := backlog(t, c, 300)
	if _, err := c.Drain(t.Context(), db, 300); err != nil {
		t.Fatal(err)
	}
	if inner.commit != "off" || inner.conns != db.Config().MaxConns {
		t.Errorf("synchronous_commit was %s on %d open connections, want off on %d", inner.commit,
			inner.conns, db.Config().MaxConns)
	}
}

// inspected is a contestant whose database the test looks at before it drains.
type inspected struct {
	rival.Contestant
	commit string
	conns  int32
}

// Drain implements rival.Contestant.
func (i *inspected) Drain(ctx context.Context, db *lab.Database, n int) (time.Duration, error) {
	i.conns = db.Stat().TotalConns()
	if err := db.QueryRow(ctx, "SHOW synchronous_commit").Scan(&i.commit); err != nil {
		return 0, err
	}
	return i.Contestant.Drain(ctx, db, n)
}

// enqueuers say which contestant publishes the events that each one enqueues.
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

// takeRows returns the rows that enqueue inserts, without the columns that differ from one enqueue
// to the next.
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
	for _, f := range []rival.Follower{
		rival.Relay{}, rival.Elsewhere{}, rival.PromptRiver{}, rival.Forwarder{Batch: 70},
	} {
		t.Run(f.Name(), func(t *testing.T) {
			t.Parallel()
			db := database(t)
			if err := f.Prepare(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			published := follow(t, f, db)
			for _, o := range rival.Uniform(20).Orders() {
				err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
					return f.Enqueue(t.Context(), tx, o)
				})
				if err != nil {
					t.Fatal(err)
				}
				select {
				case id := <-published:
					if id != o.OrderID {
						t.Fatalf("order %v was published, want %v", id, o.OrderID)
					}
				case <-time.After(patience):
					t.Fatalf("the event was not published within %v", patience)
				}
			}
		})
	}
}

// follow starts a follower, which ends with the test, and returns a channel of what it publishes.
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
