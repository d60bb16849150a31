package failures_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// TestAnInvalidTraceparentCostsNeitherTransactionNorDelivery uses a traceparent such as any client
// could send.
func TestAnInvalidTraceparentCostsNeitherTransactionNorDelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	invalid := []string{
		" " + valid, strings.ToUpper(valid), "00-\xff", "a\r\nb", "\x00", strings.Repeat("a", 9000),
	}
	for _, traceparent := range append(invalid, valid) {
		tx := w.begin()
		_, err := w.store.Enqueue(outbox.ContextWithTraceparent(t.Context(), traceparent), tx,
			thing("a", 1))
		w.must(err)
		_, err = w.store.EnqueueThingHappenedV1(t.Context(), tx,
			events.ThingHappenedV1{Entity: "a"},
			outbox.WithHeader("traceparent", traceparent))
		w.must(err)
		w.must(tx.Commit(t.Context()))
		m := delivery()
		m.Headers = map[string]string{outbox.HeaderTraceparent: traceparent}
		outcome, err := events.NewWitness(w.store, emitting{}).Handle(t.Context(), m)
		w.must(err)
		w.equal("outcome", outcome, inbox.OutcomeApplied)
	}
	w.equal("events", w.pending(), 3*(len(invalid)+1))
	w.equal("with a trace", query[int](w, `SELECT count(*) FROM outbox
		WHERE headers ->> 'traceparent' = $1`, valid), 3)
	w.equal("with any header", query[int](w, `SELECT count(*) FROM outbox
		WHERE headers IS NOT NULL`), 3)
}

// acting returns the inbox of a consumer whose handler inserts a row, calls act, and inserts
// another row.
func (w *world) acting(act func(ctx context.Context, tx pgx.Tx) error) *inbox.Inbox[pgx.Tx] {
	w.Helper()
	w.exec(`CREATE TABLE IF NOT EXISTS effect (consumer text, event_id uuid)`)
	return inbox.New[pgx.Tx]("acting", w.store, map[string]inbox.Route[pgx.Tx]{
		"thing.happened@1": func(ctx context.Context, tx pgx.Tx, m *outbox.Message) error {
			for _, step := range []func(context.Context, pgx.Tx) error{
				effect("before", m), act, effect("after", m),
			} {
				if err := step(ctx, tx); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

func effect(name string, m *outbox.Message) func(context.Context, pgx.Tx) error {
	return func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Conn().Exec(ctx, `INSERT INTO effect VALUES ($1, $2)`, name, m.ID.String())
		return err
	}
}

// statements returns a function that sends the statements as plain SQL, so that pgx does not notice
// what they do to the transaction.
func statements(list ...string) func(context.Context, pgx.Tx) error {
	return func(ctx context.Context, tx pgx.Tx) error {
		for _, sql := range list {
			if _, err := tx.Conn().Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestAHandlerThatBeginsItsTransactionAnewHasNotHandledTheEvent ends the transaction and begins
// another one. The connection's status does not show that.
func TestAHandlerThatBeginsItsTransactionAnewHasNotHandledTheEvent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act       func(context.Context, pgx.Tx) error
		effects   int // rows that the handler itself committed
		redeliver inbox.Outcome
	}{
		"ROLLBACK AND CHAIN": {statements("ROLLBACK AND CHAIN"), 0, inbox.OutcomeApplied},
		"ROLLBACK, BEGIN":    {statements("ROLLBACK", "BEGIN"), 0, inbox.OutcomeApplied},
		"in one string":      {statements("ROLLBACK; BEGIN"), 0, inbox.OutcomeApplied},
		"ROLLBACK, BEGIN, savepoints": {statements("ROLLBACK", "BEGIN", "SAVEPOINT a",
			"SAVEPOINT b", "RELEASE b"), 0, inbox.OutcomeApplied},
		"COMMIT AND CHAIN": {statements("COMMIT AND CHAIN"), 1, inbox.OutcomeDuplicate},
		"COMMIT, BEGIN":    {statements("COMMIT", "BEGIN"), 1, inbox.OutcomeDuplicate},
		"twice": {
			statements("ROLLBACK AND CHAIN", "ROLLBACK AND CHAIN"), 0, inbox.OutcomeApplied,
		},
		"stricter": {
			statements("ROLLBACK", "BEGIN ISOLATION LEVEL SERIALIZABLE"), 0, inbox.OutcomeApplied,
		},
		"COMMIT, BEGIN in one string": {statements("COMMIT; BEGIN"), 1, inbox.OutcomeDuplicate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, mode := range []pgx.QueryExecMode{
				pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol,
			} {
				w := newWorld(t)
				pool := connect(t, w.url,
					func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode })
				w.store = events.NewStore(pool)
				m := delivery()
				if outcome, err := w.acting(c.act).Handle(t.Context(),
					m); outcome != inbox.OutcomeFailed || !errors.Is(err, inbox.ErrTxEnded) {
					t.Fatalf("got %v, %v, want ErrTxEnded", outcome, err)
				}
				w.equal("effects", w.effects(), c.effects)
				outcome, err := w.acting(statements()).Handle(t.Context(), m)
				w.must(err)
				w.equal("the redelivery", outcome, c.redeliver)
			}
		})
	}
}

// TestASavepointOfTheHandlersChangesNothing has handlers nest transactions and roll some of them
// back.
func TestASavepointOfTheHandlersChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nested := func(ctx context.Context, tx pgx.Tx) error {
		err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
			return errors.Join(statements("INSERT INTO effect VALUES ('given up')")(ctx, tx),
				errors.New("give up"))
		})
		if err == nil {
			return errors.New("the nested transaction was committed")
		}
		return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
			return statements("INSERT INTO effect VALUES ('nested')")(ctx, tx)
		})
	}
	for _, act := range []func(context.Context, pgx.Tx) error{
		nested, statements("SAVEPOINT a", "INSERT INTO effect VALUES ('given up')", "ROLLBACK TO a",
			"INSERT INTO effect VALUES ('nested')", "RELEASE a"),
		// The handler never releases this savepoint.
		statements("SAVEPOINT a", "INSERT INTO effect VALUES ('nested')"),
	} {
		w.exec(`DROP TABLE IF EXISTS effect`)
		outcome, err := w.acting(act).Handle(t.Context(), delivery())
		w.must(err)
		w.equal("outcome", outcome, inbox.OutcomeApplied)
		w.equal("effects", query[string](w, `SELECT string_agg(consumer, ' ' ORDER BY consumer)
			FROM effect`), "after before nested")
	}
}

// TestAHandlerThatHidesAFailedStatementHasNotHandledTheEvent ignores the error of a statement.
// PostgreSQL would answer the COMMIT of such a transaction with a ROLLBACK.
func TestAHandlerThatHidesAFailedStatementHasNotHandledTheEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hide := inbox.New[pgx.Tx]("hiding", w.store, map[string]inbox.Route[pgx.Tx]{
		"thing.happened@1": func(ctx context.Context, tx pgx.Tx, _ *outbox.Message) error {
			_, _ = tx.Exec(ctx, `SELECT 1/0`)
			return nil
		},
	})
	m := delivery()
	for range 2 {
		if outcome, err := hide.Handle(t.Context(), m); outcome != inbox.OutcomeFailed ||
			!errors.Is(err, pgx.ErrTxCommitRollback) {
			t.Fatalf("got %v, %v, want a failure", outcome, err)
		}
	}
}

// TestHandlersThatUseThePoolDoNotStarveEachOther has more deliveries at a time than the pool has
// connections, and each handler needs a second connection.
func TestHandlersThatUseThePoolDoNotStarveEachOther(t *testing.T) {
	t.Parallel()
	for _, size := range []int32{2, 4} {
		w := newWorld(t)
		pool := connect(t, w.url, func(c *pgxpool.Config) { c.MaxConns = size })
		store := events.NewStore(pool)
		lookingUp := func(name string) *inbox.Inbox[pgx.Tx] {
			return inbox.New[pgx.Tx](name, store, map[string]inbox.Route[pgx.Tx]{
				"thing.happened@1": func(ctx context.Context, _ pgx.Tx, _ *outbox.Message) error {
					_, err := pool.Exec(ctx, `SELECT`)
					return err
				},
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		var deliveries sync.WaitGroup
		// Both consumers use the same store.
		for _, c := range []*inbox.Inbox[pgx.Tx]{lookingUp("one"), lookingUp("another")} {
			for range 20 {
				deliveries.Go(func() {
					if outcome, err := c.Handle(ctx, delivery()); outcome != inbox.OutcomeApplied {
						t.Errorf("%d connections: got %v, %v", size, outcome, err)
					}
				})
			}
		}
		deliveries.Wait()
	}
}

// TestAPoolOfOneConnectionIsEnoughForHandlersThatUseNoOther also shows that a handler which waits
// for the connection gives up when its context ends.
func TestAPoolOfOneConnectionIsEnoughForHandlersThatUseNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.store = events.NewStore(connect(t, w.url, func(c *pgxpool.Config) { c.MaxConns = 1 }))
	began, goOn := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	slow := w.consumer("stock", func(context.Context) error { close(began); <-goOn; return nil })
	go func() {
		_, err := slow.Handle(context.WithoutCancel(t.Context()), delivery())
		done <- err
	}()
	<-began
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := slow.Handle(ended, delivery()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the context ended", err)
	}
	close(goOn)
	w.must(<-done)
}
