package failures_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
	"github.com/outboxgen/outboxgen/examples/internal/migrate"
	"github.com/outboxgen/outboxgen/internal/testenv/postgresenv"
	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// refuses fails the test unless a relay on the store publishes nothing, and reports an error with
// all of the words.
func (w *world) refuses(store storage.Store, words ...string) {
	w.Helper()
	recording := &outboxtest.RecordingPublisher{}
	relay, err := outbox.NewRelay(store, recording, quick())
	w.must(err)
	_, err = relay.RunOnce(w.Context())
	w.wants(err, words...)
	w.equal("published", len(recording.Messages()), 0)
}

// TestAnotherServicesTablesAreRefused has two services share a database by mistake: the migration
// of one was not applied.
func TestAnotherServicesTablesAreRefused(t *testing.T) {
	t.Parallel()
	w := &world{T: t, url: postgresenv.New(t).URL}
	w.pool = connect(t, w.url)
	w.must(migrate.Goose(t.Context(), w.pool, os.DirFS("../orders/db/migrations")))
	w.store = events.NewStore(w.pool)
	w.insert(3, 10)
	w.refuses(w.store, `"shop/orders"`, `"outboxgen/conformance"`, "database.prefix")
	relay, err := outbox.NewRelay(w.store, &outboxtest.RecordingPublisher{}, quick())
	w.must(err)
	if err := relay.Run(t.Context()); !errors.Is(err, outbox.ErrUnusable) {
		t.Errorf("Run: got %v, want an error at once that wraps ErrUnusable", err)
	}
	w.equal("events that wait", w.pending(), 3)
	w.equal("shards that were added", query[int](w, `SELECT count(*) FROM outbox_shard`), 0)

	_, err = w.store.InTx(t.Context(), inbox.InTxParams[pgx.Tx]{Run: func(tx pgx.Tx) error {
		_, err := w.store.Claim(t.Context(), tx,
			inbox.ClaimParams{Consumer: "witness", Event: outbox.ID{1}})
		w.wants(err, "inbox", `"shop/orders"`, `"outboxgen/conformance"`)
		return nil
	}})
	w.must(err)
	w.equal("events claimed", query[int](w, `SELECT count(*) FROM inbox`), 0)

	// This is what the message advises if a service was renamed.
	w.exec(`UPDATE outbox_meta SET service = 'outboxgen/conformance'`)
	w.equal("published", w.relayAll(w.store).Published, 3)
}

// TestWhatTheRelayTakesForGrantedIsChecked violates the requirements one at a time.
func TestWhatTheRelayTakesForGrantedIsChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql   string
		words []string
	}{
		"a sequence that caches": {
			`ALTER SEQUENCE outbox_seq CACHE 20`, []string{"outbox_seq", "CACHE 1"},
		},
		"a sequence that goes down": {`ALTER SEQUENCE outbox_seq INCREMENT BY -1 MINVALUE -100
			START 10`, []string{"outbox_seq", "INCREMENT BY 1"}},
		"a sequence that goes round": {
			`ALTER SEQUENCE outbox_seq CYCLE`, []string{"outbox_seq", "NO CYCLE"},
		},
		"relays that are logged": {`ALTER TABLE outbox_relay
			SET LOGGED`, []string{"outbox_relay", "SET UNLOGGED"}},
		"no row of the service's": {`DELETE
			FROM outbox_meta`, []string{"outbox_meta", "insert it again"}},
		"read-only transactions": {
			`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on',
				current_database()); END $$`, []string{"read-only"},
		},
		"another client_encoding": {`DO $$ BEGIN EXECUTE
			format('ALTER DATABASE %I SET client_encoding = LATIN1', current_database()); END $$`,
			[]string{"client_encoding is LATIN1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.insert(1, 10)
			w.exec(c.sql)
			w.refuses(events.NewStore(connect(t, w.url)), c.words...)
		})
	}
}

// TestADatabaseOfAnotherEncodingIsRefused, because such a database could not hold every key.
func TestADatabaseOfAnotherEncodingIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name := query[string](w, `SELECT current_database()`) + "_latin1"
	w.exec(`CREATE DATABASE "` + name +
		`" TEMPLATE template0 ENCODING LATIN1 LC_COLLATE 'C' LC_CTYPE 'C'`)
	server := w.pool
	w.Cleanup(func() {
		_, err := server.Exec(context.WithoutCancel(t.Context()),
			`DROP DATABASE "`+name+`" WITH (FORCE)`)
		w.must(err)
	})
	w.pool = connect(t, w.url, func(c *pgxpool.Config) { c.ConnConfig.Database = name })
	w.must(migrate.Plain(t.Context(), w.pool, os.DirFS("../conformance/plain/migrations")))
	w.refuses(events.NewStore(w.pool), "encoding is LATIN1")
}

// TestRowLevelSecurity has row-level security without a policy, which hides every row without an
// error. With a policy, everything works.
func TestRowLevelSecurity(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	relay := w.role()
	w.exec(`GRANT ALL ON ALL TABLES IN SCHEMA public TO ` + relay + `;
		GRANT SELECT ON SEQUENCE outbox_seq TO ` + relay)
	tables := []string{"outbox", "outbox_dead", "outbox_relay", "outbox_shard"}
	store := events.NewStore(w.as(relay))
	w.insert(5, 10)
	for _, table := range tables {
		w.exec(`ALTER TABLE ` + table + ` ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY`)
		w.refuses(store, `row-level security hides every row of "`+table+`"`, relay)
		w.exec(`CREATE POLICY looking ON ` + table + ` FOR SELECT TO ` + relay + ` USING (true)`)
		w.refuses(store, `row-level security hides every row of "`+table+`"`, relay)
		w.exec(`CREATE POLICY relaying
			ON ` + table + ` TO ` + relay + ` USING (true) WITH CHECK (true)`)
	}
	w.equal("published", w.relayAll(store).Published, 5)
	w.maintain(store)
}

// TestTheTableRefusesARowThatCouldNotBeRead, whoever writes it. The error names the rule and does
// not show the row.
func TestTheTableRefusesARowThatCouldNotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.insert(1, 10)
	for _, c := range []struct{ column, value, rule string }{
		{"shard", `-1`, "outbox_shard_is_not_negative"},
		{"type", `''`, "outbox_type_is_a_name"},
		{"type", `'thing happened'`, "outbox_type_is_a_name"},
		{"type", `'thing.happened@1'`, "outbox_type_is_a_name"},
		{"type", `repeat('x', 101)`, "outbox_type_is_a_name"},
		{"version", `0`, "outbox_version_is_positive"},
		{"topic", `''`, "outbox_topic_is_given"},
		{"key", `repeat('é', 513)`, "outbox_key_is_short"},
		{"attempts", `-1`, "outbox_attempts_are_counted"},
		{"created_at", `'infinity'`, "outbox_created_at_is_a_time"},
		{"created_at", `'-infinity'`, "outbox_created_at_is_a_time"},
		{"created_at", `'20000-01-01'`, "outbox_created_at_is_a_time"},
		{"created_at", `'0044-03-15 BC'`, "outbox_created_at_is_a_time"},
		{"headers", `'{"secret": 7}'`, "outbox_headers_are_strings"},
		{"headers", `'{"secret": null}'`, "outbox_headers_are_strings"},
		{"headers", `'{"secret": []}'`, "outbox_headers_are_strings"},
		{"headers", `'{"secret": ["a"]}'`, "outbox_headers_are_strings"},
		{"headers", `'{"a": "b", "secret": {"c": "d"}}'`, "outbox_headers_are_strings"},
		{"headers", `'["secret"]'`, "outbox_headers_are_strings"},
		{"headers", `'"secret"'`, "outbox_headers_are_strings"},
		{"headers", `'null'`, "outbox_headers_are_strings"},
	} {
		_, err := w.pool.Exec(t.Context(), fmt.Sprintf(`UPDATE outbox
			SET %s = %s`, c.column, c.value))
		if !isCode(err, "23514") || strings.Contains(fmt.Sprintf("%+v", err), "secret") {
			t.Errorf("%s = %s: got error %v, want a check violation that does not show the row",
				c.column, c.value, err)
		}
		w.wants(err, c.rule)
	}
	_, err := w.pool.Exec(t.Context(),
		`INSERT INTO outbox (seq, shard, id, type, version, topic, key, payload, content_type)
		OVERRIDING SYSTEM VALUE
		VALUES (0, 0, gen_random_uuid(), 'thing.happened', 1, 'things', '', '', '')`)
	w.wants(err, "outbox_seq_is_positive")
	w.exec(`UPDATE outbox SET headers = '{}', key = repeat('x', 1024),
		type = 'thing_2.has.happened', attempts = 2147483647`)
	w.exec(`UPDATE outbox SET headers = '{"a": "b", "c": ""}'`)
	w.equal("published", w.relayAll(w.store).Published, 1)
}

// TestAReplayIsCheckedToo shows that a dead letter which somebody has edited returns to the outbox
// only if it can be read.
func TestAReplayIsCheckedToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const insert = `INSERT INTO outbox_dead (id, shard, seq, type, version, topic, key, payload,
		content_type, headers, attempts, last_error, created_at)
		VALUES ($1, 0, 1, 'thing.happened', 1, 'things', '', '{}', 'application/json', $2, 3,
		'no', now())`
	good, bad := outbox.ID{1}, outbox.ID{2}
	w.exec(insert, good.String(), `{"a": "b"}`)
	w.exec(insert, bad.String(), `{"a": 7}`)
	_, err := w.store.ReplayDeadLetters(t.Context(),
		storage.ReplayDeadLettersParams{IDs: []storage.ID{bad}})
	w.wants(err, "outbox_headers_are_strings")
	w.equal("replayed", w.replay(good), 1)
	w.equal("dead letters left", query[int](w, `SELECT count(*) FROM outbox_dead`), 1)
}

// TestTheStatusShowsAnyPayload has payloads that are no text.
func TestTheStatusShowsAnyPayload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app := w.role()
	w.insert(4, 10)
	w.exec(`UPDATE outbox SET payload = CASE seq WHEN 1 THEN '\xff00' WHEN 2 THEN '\xc3a9' WHEN
		3 THEN '' ELSE '\xeda080' END::bytea`)
	w.exec(`GRANT SELECT ON outbox_status TO ` + app)
	w.equal("payloads", query[string](&world{T: t, pool: w.as(app)},
		`SELECT string_agg(payload, '|' ORDER BY payload COLLATE "C") FROM outbox_status`),
		`|\355\240\200|\377\000|é`)
}

// TestTheDownMigrationsLeaveNothing but what others may use, too.
func TestTheDownMigrationsLeaveNothing(t *testing.T) {
	t.Parallel()
	w, store := retaining(t)
	w.maintain(store)
	w.keptSince(1, "1 hour")
	names, err := filepath.Glob("../conformance/prefixed/migrations/*.sql")
	w.must(err)
	for _, name := range slices.Backward(names) {
		text, err := os.ReadFile(name)
		w.must(err)
		_, down, _ := strings.Cut(string(text), "-- +goose Down")
		w.exec(down)
	}
	w.equal("left in the schema", query[int](w, `SELECT (SELECT count(*) FROM pg_class
		WHERE relnamespace = 'messaging'::regnamespace)
		+ (SELECT count(*) FROM pg_proc WHERE pronamespace = 'messaging'::regnamespace)`), 0)
}
