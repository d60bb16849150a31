package failures_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/outboxgen/outboxgen/examples/conformance/plain/events/outboxdb"
)

// TestNoQueryReadsMoreForWhatTheStatisticsSay runs every query of a store on full tables, with
// statistics that were gathered when the tables were different.
func TestNoQueryReadsMoreForWhatTheStatisticsSay(t *testing.T) {
	t.Parallel()
	const rows = 60_000
	for moment, fill := range map[string]func(w *world){
		"everything analysed": func(w *world) {
			w.fillTables(rows)
			w.exec(`VACUUM ANALYZE`)
		},
		"never analysed": func(w *world) { w.fillTables(rows) },
		"analysed while empty": func(w *world) {
			w.exec(`VACUUM ANALYZE`)
			w.fillTables(rows)
		},
		"vacuumed after all was gone": func(w *world) {
			w.fillTables(rows)
			w.exec(`DELETE FROM outbox; DELETE FROM outbox_dead`)
			w.exec(`VACUUM ANALYZE`)
			w.fillTables(rows)
		},
		"analysed when nothing waited and nothing was caused": func(w *world) {
			w.fillTables(rows)
			w.exec(`UPDATE outbox SET available_at = NULL, causation_id = NULL`)
			w.exec(`VACUUM ANALYZE`)
			w.exec(`UPDATE outbox SET available_at = now() + interval '1 hour',
				causation_id = gen_random_uuid() WHERE seq % 3 = 0`)
		},
		"analysed when one event had caused everything": func(w *world) {
			w.fillTables(rows)
			w.exec(`UPDATE outbox SET causation_id = '00000000-0000-4000-8000-000000000009',
				available_at = now() + interval '1 hour'`)
			w.exec(`VACUUM ANALYZE`)
		},
	} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.exec(`ALTER TABLE outbox SET (autovacuum_enabled = off);
				ALTER TABLE outbox_dead SET (autovacuum_enabled = off);
				ALTER TABLE inbox SET (autovacuum_enabled = off)`)
			w.exec(`INSERT INTO outbox_relay VALUES ('` + relayID + `', now() + interval '1 hour');
				INSERT INTO outbox_shard (shard, relay, fence) SELECT i, '` + relayID +
				`', 1 FROM generate_series(0, 15) AS i`)
			fill(w)
			w.explainAll()
		})
	}
}

// fillTables fills the tables. A third of the events are pending, each caused by another one.
func (w *world) fillTables(rows int) {
	w.Helper()
	w.insert(rows, 100)
	w.exec(`UPDATE outbox SET available_at = now() + interval '1 hour',
		causation_id = gen_random_uuid() WHERE seq % 3 = 0`)
	w.insertDead(rows)
	w.exec(`INSERT INTO inbox SELECT 'witness', gen_random_uuid()
		FROM generate_series(1, $1::integer) ON CONFLICT DO NOTHING`, rows)
}

const (
	relayID  = "00000000-0000-4000-8000-000000000001"
	someID   = "00000000-0000-4000-8000-000000000002"
	someName = "thing.happened"
)

// arguments returns values for the parameters of all queries, by their names. Lists of events have
// twenty elements.
func (w *world) arguments() map[string]any {
	seqs := query[[]int64](w, `SELECT array_agg(seq)
		FROM (SELECT seq FROM outbox ORDER BY seq LIMIT 20 OFFSET 30000) AS s`)
	ids := query[[]pgtype.UUID](w, `SELECT array_agg(id)
		FROM (SELECT id FROM outbox ORDER BY seq LIMIT 20 OFFSET 30000) AS s`)
	dead := query[[]string](w, `SELECT array_agg(id::text)
		FROM (SELECT id FROM outbox_dead ORDER BY id LIMIT 20 OFFSET 3000) AS s`)
	last := seqs[len(seqs)-1]
	var shards, limits, attempts []int32
	var fences, zeros, firsts, lasts, delays []int64
	var keys, texts []string
	var no []bool
	for i := range int32(20) {
		attempts, delays, texts, no = append(attempts, 1), append(delays, 1000),
			append(texts, "no"), append(no, false)
		if i < 16 {
			shards, limits, fences = append(shards, i), append(limits, 20), append(fences, 1)
			zeros, firsts, lasts, keys = append(zeros, 0), append(firsts, seqs[0]),
				append(lasts, last), append(keys, fmt.Sprint("key ", i))
		}
	}
	relay, some := pgtype.UUID{Valid: true}, pgtype.UUID{Valid: true}
	w.must(relay.Scan(relayID))
	w.must(some.Scan(someID))
	return map[string]any{
		"Shard": int32(1), "ID": some, "Type": someName, "Version": int32(1), "Topic": "things",
		"Key": "key 1", "Payload": []byte("{}"),
		"ContentType": "", "Headers": []byte("{}"), "CausationID": some,
		"Relay": relay, "LeaseUs": int64(1e9), "Held": []int32{}, "Count": int32(20),
		"Shards": shards, "Fences": fences,
		"OwnedShards": shards, "OwnedFences": fences, "MaxBytes": int64(1 << 20), "Afters": zeros,
		"Limits": limits, "Known": seqs,
		"Keys": keys, "Froms": firsts, "Tos": lasts, "Seqs": seqs, "Ids": ids, "Attempts": attempts,
		"Interrupted": no, "DelaysUs": delays, "Errors": texts,
		"Consumer": "witness", "EventID": some, "Service": "outboxgen/conformance",
		"Channel": "outbox", "Message": "",
		"InsertRelay.Relay": some, // a relay that has not joined
		// For queries with one parameter, the key is the name of the query.
		"CountBacklog": int32(1000), "DiscardDead": dead, "InsertShards": int32(16),
		"CheckRelay": relay, "LeaveRelay": relay, "ListDead": int32(20),
		"Maintain": int64(0), "RedispatchCaused": some, "ReplayDead": dead,
	}
}

// explainAll calls every method that sqlc has generated, with an explainer as its database.
func (w *world) explainAll() {
	w.Helper()
	arguments := w.arguments()
	explained := 0
	kind := reflect.TypeFor[*outboxdb.Queries]()
	for i := range kind.NumMethod() {
		method := kind.Method(i)
		switch method.Name {
		case "WithTx", "CopyEvents", "PlanRead", "PlanSettle", "PlanWrite":
			continue
		}
		in := []reflect.Value{reflect.ValueOf(w.Context())}
		if method.Type.NumIn() == 3 {
			in = append(in, w.argument(arguments, method.Name, method.Type.In(2)))
		}
		for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
			e := &explainer{world: w, query: method.Name, mode: mode}
			reflect.ValueOf(outboxdb.New(e)).Method(i).Call(in)
			explained++
			if most := mostPages(method.Name); e.pages > most {
				w.Errorf("%s, %s: it touches %d pages, want %d at most\n%s", method.Name, mode,
					e.pages, most, e.plan)
			}
		}
	}
	if explained < 50 {
		w.Errorf("only %d plans were looked at", explained)
	}
}

// mostPages returns how many pages a query may touch: for each event the page of its row, and a
// step or two down each index.
func mostPages(name string) int {
	switch name {
	case "ReadShards", "ReadLarge", "ReadDue", "ReadKeys":
		return 16 * (20 + 5) * 2
	case "CountBacklog":
		return 2 * (1000 + 50)
	case "RetryEvents", "DeleteEvents", "MoveEventsToSent", "MoveEventsToDead", "ReplayDead",
		"DiscardDead", "ListDead":
		return 20*20 + 100
	case "Maintain":
		return 400 // pages of the system catalogue
	}
	return 150
}

// argument returns a value for a parameter of a method.
func (w *world) argument(values map[string]any, method string, kind reflect.Type) reflect.Value {
	w.Helper()
	value := func(name string) reflect.Value {
		v, ok := values[method+"."+name]
		if !ok {
			v, ok = values[name]
		}
		if !ok {
			w.Fatalf("there is no value for %s of %s: add one", name, method)
		}
		return reflect.ValueOf(v)
	}
	if kind.Kind() != reflect.Struct || kind == reflect.TypeFor[pgtype.UUID]() {
		return value(method)
	}
	params := reflect.New(kind).Elem()
	for i := range kind.NumField() {
		params.Field(i).Set(value(kind.Field(i).Name))
	}
	return params
}

// explainer is a database that explains each statement instead of returning its rows. The statement
// is planned with the settings that the store gives it.
type explainer struct {
	*world
	query, mode string
	plan        string
	pages       int
}

func (e *explainer) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	e.explain(outboxdb.PlanWrite, sql, args)
	return pgconn.CommandTag{}, pgx.ErrNoRows
}

func (e *explainer) Query(_ context.Context, sql string, args ...any) (pgx.Rows, error) {
	e.explain(outboxdb.PlanRead, sql, args)
	return nil, pgx.ErrNoRows
}

func (e *explainer) QueryRow(_ context.Context, sql string, args ...any) pgx.Row {
	e.explain("SELECT 1", sql, args)
	return noRow{}
}

func (e *explainer) CopyFrom(
	context.Context, pgx.Identifier, []string, pgx.CopyFromSource,
) (int64, error) {
	return 0, pgx.ErrNoRows
}

type noRow struct{}

func (noRow) Scan(...any) error { return pgx.ErrNoRows }

// explain runs the statement as a prepared one, and rolls back what it did. Statements in callers'
// transactions and those sent by QueryRow come without planner settings, and run in whatever mode
// the pool has.
func (e *explainer) explain(planned, sql string, args []any) {
	e.Helper()
	tx := e.begin()
	defer func() { _ = tx.Rollback(e.Context()) }()
	switch e.query {
	case "InsertEvent", "ClaimFresh", "ClaimEvent", "RedispatchCaused":
		planned = "SELECT 1"
	case "DeleteEvents", "MoveEventsToSent", "RetryEvents": // as long as there is no dead letter
		planned = outboxdb.PlanSettle
	}
	literals := make([]string, len(args))
	for i, arg := range args {
		literals[i] = literal(arg)
	}
	execute := "q"
	if len(args) > 0 {
		execute = "q(" + strings.Join(literals, ", ") + ")"
	}
	for _, statement := range []string{
		"SET LOCAL plan_cache_mode = " + e.mode, planned, "PREPARE q AS " + sql,
	} {
		_, err := tx.Exec(e.Context(), statement)
		e.must(err)
	}
	var text []byte
	err := tx.QueryRow(e.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE "+
		execute).Scan(&text)
	if err != nil {
		e.Fatalf("%s: %v", e.query, err)
	}
	_, err = tx.Exec(e.Context(), "DEALLOCATE q")
	e.must(err)
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	e.must(json.Unmarshal(text, &plans))
	if len(plans) != 1 {
		e.Fatalf("%s: no plan in %s", e.query, text)
	}
	e.plan, e.pages = string(text), plans[0].Plan.Hit+plans[0].Plan.Read
}

// literal returns a parameter as SQL.
func literal(arg any) string {
	switch v := arg.(type) {
	case pgtype.UUID:
		return "'" + v.String() + "'"
	case []pgtype.UUID:
		texts := make([]string, len(v))
		for i, id := range v {
			texts[i] = id.String()
		}
		return literal(texts)
	case []byte:
		return fmt.Sprintf(`'\x%x'`, v)
	case string:
		return "'" + v + "'"
	case []string:
		return `'{"` + strings.Join(v, `","`) + `"}'`
	case []int32, []int64, []bool:
		return "'{" + strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", ","), "[]") + "}'"
	}
	return fmt.Sprint(arg)
}
