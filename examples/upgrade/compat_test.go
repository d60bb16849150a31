package upgrade_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/sql"
	"github.com/outboxgen/outboxgen/gen/sqlc"
)

const (
	released = "release1/events/outboxdb"
	today    = "events/outboxdb"
)

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// compile has sqlc compile the queries of one release against the tables of another.
func compile(t *testing.T, queries, schema string) (map[string][]byte, error) {
	t.Helper()
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	command, err := sqlc.Find("", here)
	if err != nil {
		t.Fatal(err)
	}
	return command.Compile(t.Context(), t.TempDir(), map[string][]byte{
		sql.SchemaFile:  read(t, schema, sql.SchemaFile),
		sql.QueriesFile: read(t, queries, sql.QueriesFile),
		sql.ConfigFile:  read(t, queries, sql.ConfigFile),
	})
}

// query matches the text of a query in the Go that sqlc generates, with its name.
var query = regexp.MustCompile("(?s)`-- name: (\\w+) [^`]*`")

// TestEachReleasesQueriesSuitTheOthersTables has sqlc compile them: their parameters and results in
// Go are the same. Their texts differ, since sqlc expands *.
func TestEachReleasesQueriesSuitTheOthersTables(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ queries, schema string }{{released, today}, {today, released}} {
		made, err := compile(t, c.queries, c.schema)
		if err != nil {
			t.Errorf("%s on the tables of %s: %v", c.queries, c.schema, err)
			continue
		}
		for _, name := range []string{"queries.sql.go", "copyfrom.go", "db.go"} {
			got := query.ReplaceAllString(string(made[name]), "$1")
			if want := query.ReplaceAllString(string(read(t, c.queries, name)), "$1"); got != want {
				t.Errorf("%s of %s differs on the tables of %s", name, c.queries, c.schema)
			}
		}
	}
}

// refused returns the queries of a release that the server refuses.
func (w *world) refused(dir string) []string {
	w.Helper()
	conn, err := w.pool.Acquire(w.Context())
	w.must(err)
	defer conn.Release()
	var names []string
	all := query.FindAllSubmatch(read(w.T, dir, "queries.sql.go"), -1)
	if len(all) < 20 {
		w.Fatalf("found %d queries in %s", len(all), dir)
	}
	for _, q := range all {
		if _, err := conn.Conn().Prepare(w.Context(), "",
			strings.Trim(string(q[0]), "`")); err != nil {
			names = append(names, string(q[1]))
		}
	}
	slices.Sort(names)
	return names
}

// TestTheServerTakesTheReleasesQueriesOnTodaysTables uses the queries as deployed code sends them.
func TestTheServerTakesTheReleasesQueriesOnTodaysTables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.migrate(before)
	if got := w.refused(released); len(got) > 0 {
		t.Fatalf("on its own tables: %v are refused", got)
	}
	w.migrate(before + 1)
	if got := append(w.refused(released), w.refused(today)...); len(got) > 0 {
		t.Errorf("on today's tables: %v are refused", got)
	}
}

// TestWhatTodaysCodeNeedsOfTheNextTables lists the queries that fail on the tables of the previous
// release, which is why the tables are migrated first. The queries of producers are not among them.
func TestWhatTodaysCodeNeedsOfTheNextTables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.migrate(before)
	want := []string{
		"ListDead", "ListDeadOfType", "MoveEventsToDead", "MoveEventsToSent",
		"ReadDue", "ReadKeys", "ReadLarge", "ReadShards", "ReplayDead",
	}
	if got := w.refused(today); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, n := range []int64{1, 100} { // by INSERT, and by COPY
		w.inTx(func(tx pgx.Tx) error { return w.enqueueNext(t.Context(), tx, n, 0, n) })
	}
	if n := w.count(`SELECT count(*) FROM outbox`); n != 101 {
		t.Errorf("got %d events, want 101", n)
	}
}

// TestTheTablesAreTheSameInWhicheverOrderFeaturesCome applies the migrations of all features in
// every order that keeps the order within each feature, and then reverts them.
func TestTheTablesAreTheSameInWhicheverOrderFeaturesCome(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{"", "messaging"} {
		db := catalogue.Database{
			Engine: "postgresql", Schema: schema, Features: catalogue.Features(),
		}
		all, err := sql.Migrations(db)
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		for _, order := range orders(all) {
			w := newWorld(t)
			for _, m := range order {
				up, err := m.Up(db, "a service", sql.Statement{})
				w.must(err)
				w.exec(string(up))
			}
			if want == "" {
				want = w.tables()
			}
			if got := w.tables(); got != want {
				t.Errorf("%v makes\n%s\nwant\n%s", order, got, want)
			}
			for _, m := range slices.Backward(order) {
				down, err := m.Down(db, sql.Statement{})
				w.must(err)
				w.exec(string(down))
			}
			if got := w.tables(); got != "" {
				t.Errorf("%v leaves\n%s", order, got)
			}
		}
	}
}

// orders returns the orders in which the migrations of several features can be applied: outbox 1
// first, and those of each feature in their order.
func orders(all []sql.Migration) (found [][]sql.Migration) {
	var add func(order, rest []sql.Migration)
	add = func(order, rest []sql.Migration) {
		if len(rest) == 0 {
			found = append(found, slices.Clone(order))
		}
		first := map[catalogue.Feature]bool{}
		for i, m := range rest {
			if !first[m.Feature] {
				first[m.Feature] = true
				add(append(slices.Clone(order), m), slices.Delete(slices.Clone(rest), i, i+1))
			}
		}
	}
	add(all[:1:1], all[1:])
	return found
}

// tables describes all that the migrations create, sorted. A column that was added later stands
// behind the others.
func (w *world) tables() string {
	w.Helper()
	rows, err := w.pool.Query(w.Context(), `
		WITH ours AS (
			SELECT oid, nspname FROM pg_namespace WHERE nspname IN ('public', 'messaging'))
		SELECT format('%s %s %s %s %s', c.relkind, c.relpersistence, c.relreplident,
			c.relname, c.reloptions)
		FROM pg_class c JOIN ours ON ours.oid = c.relnamespace
		UNION ALL SELECT format('column %s.%s %s %s %s', c.relname, a.attname,
			format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid))
		FROM pg_class c JOIN ours ON ours.oid = c.relnamespace
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
		UNION ALL SELECT pg_get_indexdef(c.oid)
		FROM pg_class c JOIN ours ON ours.oid = c.relnamespace WHERE c.relkind = 'i'
		UNION ALL SELECT pg_get_viewdef(c.oid)
		FROM pg_class c JOIN ours ON ours.oid = c.relnamespace WHERE c.relkind = 'v'
		UNION ALL SELECT pg_get_functiondef(p.oid) || p.proacl::text
		FROM pg_proc p JOIN ours ON ours.oid = p.pronamespace
		UNION ALL SELECT conname || pg_get_constraintdef(o.oid)
		FROM pg_constraint o JOIN ours ON ours.oid = o.connamespace
		ORDER BY 1`)
	w.must(err)
	defer rows.Close()
	var all []string
	for rows.Next() {
		var line *string
		w.must(rows.Scan(&line))
		if line != nil {
			all = append(all, *line)
		}
	}
	w.must(rows.Err())
	if n := w.versions(); n != "" {
		all = append(all, n)
	}
	return strings.Join(all, "\n")
}

// versions returns the contents of outbox_schema, if it exists.
func (w *world) versions() string {
	w.Helper()
	var where *string
	w.must(w.pool.QueryRow(w.Context(), `SELECT COALESCE(to_regclass('outbox_schema'),
		to_regclass('messaging.outbox_schema'))::text`).Scan(&where))
	if where == nil {
		return ""
	}
	var said string
	w.must(w.pool.QueryRow(w.Context(), fmt.Sprintf(`
		SELECT string_agg(concat_ws(' ', feature, version, min_compatible), ', ' ORDER BY feature)
		FROM %s`, *where)).Scan(&said))
	return said
}
