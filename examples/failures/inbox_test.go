package failures_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// delivery returns an event as a broker would deliver it.
func delivery() *outbox.Message {
	return &outbox.Message{
		ID: uuid.New(), Type: "thing.happened", Version: 1, Payload: []byte(`{"entity":"a","n":1}`),
	}
}

// consumer returns the inbox of a consumer with the given name. Its handler inserts a row, and only
// the inbox prevents that from happening twice.
func (w *world) consumer(name string, then func(ctx context.Context) error) *inbox.Inbox[pgx.Tx] {
	w.Helper()
	w.exec(`CREATE TABLE IF NOT EXISTS effect (consumer text, event_id uuid)`)
	return inbox.New[pgx.Tx](name, w.store, map[string]inbox.Route[pgx.Tx]{
		"thing.happened@1": func(ctx context.Context, tx pgx.Tx, m *outbox.Message) error {
			if _, err := tx.Exec(ctx, `INSERT INTO effect VALUES ($1, $2)`, name,
				m.ID.String()); err != nil {
				return err
			}
			return then(ctx)
		},
	})
}

func (w *world) effects() int { return query[int](w, `SELECT count(*) FROM effect`) }

func nothing(context.Context) error { return nil }

func TestASecondConsumerAppliesTheEventToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := delivery()
	for _, name := range []string{"billing", "shipping"} {
		c := w.consumer(name, nothing)
		for _, want := range []inbox.Outcome{inbox.OutcomeApplied, inbox.OutcomeDuplicate} {
			outcome, err := c.Handle(t.Context(), m)
			w.must(err)
			w.equal("outcome for "+name, outcome, want)
		}
	}
	w.equal("effects", w.effects(), 2)
}

// TestAHandlerThatEndsItsTransactionHasNotHandledTheEvent has a handler send a COMMIT or ROLLBACK
// as plain SQL, which pgx does not notice.
func TestAHandlerThatEndsItsTransactionHasNotHandledTheEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	statement := "ROLLBACK"
	c := inbox.New[pgx.Tx]("careless", w.store, map[string]inbox.Route[pgx.Tx]{
		"thing.happened@1": func(ctx context.Context, tx pgx.Tx, _ *outbox.Message) error {
			_, err := tx.Exec(ctx, statement)
			return err
		},
	})
	m := delivery()
	if _, err := c.Handle(t.Context(), m); !errors.Is(err, inbox.ErrTxEnded) {
		t.Fatalf("got error %v, want ErrTxEnded", err)
	}
	statement = "SELECT 1"
	outcome, err := c.Handle(t.Context(), m)
	w.must(err)
	w.equal("the redelivery", outcome, inbox.OutcomeApplied)
}

// TestADeliveryWaitsForNoOther delivers an event while another delivery of it is being handled.
func TestADeliveryWaitsForNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	began, goOn := make(chan struct{}), make(chan struct{})
	slow := w.consumer("stock", func(context.Context) error { close(began); <-goOn; return nil })
	// If a delivery waited for the other one, it would wait for ever; this setting makes that an
	// error.
	w.store = events.NewStore(connect(t, w.url,
		func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["lock_timeout"] = "20s" }))
	fast := w.consumer("stock", nothing)
	m := delivery()
	done := make(chan error, 1)
	go func() {
		_, err := slow.Handle(context.WithoutCancel(t.Context()), m)
		done <- err
	}()
	<-began
	for range 20 {
		if _, err := fast.Handle(t.Context(), m); !errors.Is(err, inbox.ErrInFlight) {
			t.Errorf("while another is handled: got %v, want ErrInFlight", err)
			break
		}
	}
	close(goOn)
	w.must(<-done)
	outcome, err := fast.Handle(t.Context(), m)
	w.must(err)
	w.equal("outcome afterwards", outcome, inbox.OutcomeDuplicate)
	w.equal("effects", w.effects(), 1)
}

// TestAStricterDefaultIsolationChangesNothing sets a default isolation level for the whole
// database, as some teams do.
func TestAStricterDefaultIsolationChangesNothing(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.setting("default_transaction_isolation", level)
			recording := &outboxtest.RecordingPublisher{}
			first, leave := w.run(w.store, recording, quick())
			w.eventually("it owns all shards", func() bool { return first.Stats().Shards == 16 })
			_, leaveToo := w.run(w.store, recording, quick())
			const n = 1000
			var producers sync.WaitGroup
			for p := range 4 {
				producers.Go(func() { w.produceWithRetries(fmt.Sprint("key ", p), n/4) })
			}
			w.published(recording, n/4)
			// Relays join and leave, so that shards change hands meanwhile.
			for _, leave := range []func(){leave, leaveToo} {
				leave()
				relay, _ := w.run(w.store, recording, quick())
				w.eventually("it owns half of the shards",
					func() bool { return relay.Stats().Shards == 8 })
			}
			producers.Wait()
			w.once(w.published(recording, n), n)
			w.eventually("all is settled", func() bool { return w.pending() == 0 })
			w.storm()
		})
	}
}

// setting changes a default of the test's database for all connections that are opened later.
func (w *world) setting(name, value string) {
	w.Helper()
	w.exec(fmt.Sprintf("DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET %s = %%L', "+
		"current_database(), '%s'); END $$", name, value))
	w.pool = connect(w.T, w.url)
	w.store = events.NewStore(w.pool)
	w.equal(name, query[string](w, "SHOW "+name), value)
}

// produceWithRetries commits n events of a key, and repeats transactions that could not be
// serialised, as applications have to at that isolation level.
func (w *world) produceWithRetries(key string, n int) {
	for i := 0; i < n; {
		err := pgx.BeginFunc(w.Context(), w.pool, func(tx pgx.Tx) error {
			_, err := w.store.Enqueue(w.Context(), tx, thing(key, i))
			return err
		})
		if err == nil {
			i++
		} else if !isCode(err, "40001") {
			w.Error(err)
			return
		}
	}
}

// storm delivers one event eight times at once, and repeats that until every delivery finds it
// applied.
func (w *world) storm() {
	w.Helper()
	c := w.consumer("stock", nothing)
	m := delivery()
	var deliveries sync.WaitGroup
	for range 8 {
		deliveries.Go(func() {
			for {
				_, err := c.Handle(w.Context(), m)
				if err == nil {
					return
				}
				if !errors.Is(err, inbox.ErrInFlight) {
					w.Error(err)
					return
				}
			}
		})
	}
	deliveries.Wait()
	w.equal("effects", w.effects(), 1)
}

// TestADuplicateMakesWhatItsEventCausedDue delivers an event again whose first delivery was
// committed, while the event that the handler enqueued waits weeks for its retry.
func TestADuplicateMakesWhatItsEventCausedDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	consumer := events.NewWitness(w.store, emitting{})
	m := delivery()
	_, err := consumer.Handle(t.Context(), m)
	w.must(err)
	var published outboxtest.RecordingPublisher
	c := quick()
	// The delay is random, so its bound must be large enough that it is hardly ever short.
	c.MinRetryDelay, c.MaxRetryDelay = 1000*time.Hour, 1000*time.Hour
	refusals := make(chan struct{}, 1)
	refusals <- struct{}{}
	relay, _ := w.run(w.store, &outboxtest.FaultyPublisher{Next: &published,
		Decide: func(*outbox.Message) outboxtest.Fault {
			select {
			case <-refusals:
				return outboxtest.Refuse
			default:
				return outboxtest.Deliver
			}
		}}, c)
	w.eventually("it is put off", func() bool { return relay.Stats().Retried == 1 })
	outcome, err := consumer.Handle(t.Context(), m)
	w.must(err)
	w.equal("outcome", outcome, inbox.OutcomeDuplicate)
	w.equal("its cause", w.published(&published, 1)[0].CausationID, m.ID)
}
