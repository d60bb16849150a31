package failures_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// TestSettingsOfTheDatabaseChangeNoValue uses settings that decide how the server writes values as
// text. In every mode of pgx, the store must publish, retry, dead-letter, list, replay and claim
// exactly what was enqueued.
func TestSettingsOfTheDatabaseChangeNoValue(t *testing.T) {
	t.Parallel()
	modes := []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe,
		pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol}
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, setting := range [][2]string{
				{"bytea_output", "escape"}, {"DateStyle", "German, DMY"},
				{"IntervalStyle", "sql_standard"}, {"TimeZone", "Asia/Kathmandu"},
				{"extra_float_digits", "-15"}, {"array_nulls", "off"},
				{"quote_all_identifiers", "on"}, {"default_transaction_deferrable", "on"},
			} {
				w.setting(setting[0], setting[1])
			}
			w.pool = connect(t, w.url,
				func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode })
			w.store = events.NewStore(w.pool)
			w.roundTrip()
		})
	}
}

// roundTrip takes an event with a key that is hard to quote through every method of the store that
// takes or returns values.
func (w *world) roundTrip() {
	w.Helper()
	key := `\x41 \\ é ' "`
	before := time.UnixMicro(query[int64](w,
		`SELECT (extract(epoch FROM now()) * 1000000)::bigint`))
	list := append(manyThings(20), thing(key, 7)) // by COPY
	w.enqueue(list...)
	ids := w.enqueue(thing(key, 8))
	recording := &outboxtest.RecordingPublisher{}
	refusing := publisherFunc(func(ctx context.Context, m *outbox.Message) error {
		if m.ID == ids[0] {
			return outbox.Permanent(errors.New("refused"))
		}
		return recording.Publish(ctx, m)
	})
	w.relayTo(refusing)
	w.equal("published", len(recording.Messages()), 21)
	letters := w.deadLetters(10)
	w.equal("dead letters", len(letters), 1)
	w.equal("its key", letters[0].Key, key)
	if age := letters[0].CreatedAt.Sub(before); age < 0 || age > time.Hour {
		w.Errorf("it was created %v after the test began", age)
	}
	w.equal("replayed", w.replay(ids...), 1)
	w.relayTo(recording)
	same := 0
	for _, m := range recording.Messages() {
		var e struct{ Entity string }
		w.must(json.Unmarshal(m.Payload, &e))
		w.equal("entity", e.Entity, m.Key)
		if m.Key == key {
			same++
		}
	}
	w.equal("events with the key", same, 2)
	w.maintain(w.store)
	w.equal("backlog", w.countBacklog(w.store), storage.CountBacklogResult{})
	for _, want := range []inbox.Claim{inbox.ClaimFresh, inbox.ClaimDuplicate} {
		_, err := w.store.InTx(w.Context(), inbox.InTxParams[pgx.Tx]{Run: func(tx pgx.Tx) error {
			r, err := w.store.Claim(w.Context(), tx,
				inbox.ClaimParams{Consumer: "witness", Event: ids[0]})
			w.must(err)
			w.equal("claim", r.Claim, want)
			_, err = w.store.Redispatch(w.Context(), tx, inbox.RedispatchParams{Causation: ids[0]})
			return err
		}})
		w.must(err)
	}
}

// relayTo publishes all that is pending, once.
func (w *world) relayTo(p outbox.Publisher) {
	w.Helper()
	relay, err := outbox.NewRelay(w.store, p, quick())
	w.must(err)
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	_, err = relay.RunOnce(ctx)
	w.must(err)
}
