package failures_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
	prefixed "github.com/outboxgen/outboxgen/examples/conformance/prefixed/events"
)

// as returns a pool whose connections have switched to a role.
func (w *world) as(role string) *pgxpool.Pool {
	w.Helper()
	return connect(w.T, w.url, func(c *pgxpool.Config) {
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, `SET ROLE `+role)
			return err
		}
	})
}

// wants fails the test unless the text of err contains all of the words.
func (w *world) wants(err error, words ...string) {
	w.Helper()
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			w.Errorf("got error %v, want one that says %q", err, word)
		}
	}
}

// keptSince adds rows to the published events, as if they had been published that long ago.
func (w *world) keptSince(n int, ago string) {
	w.Helper()
	w.exec(`INSERT INTO messaging.app_outbox_sent (shard, seq, id, type, version, topic, key,
		payload, content_type, attempts, created_at, sent_at)
		SELECT 0, n, gen_random_uuid(), 't', 1, 't', '', '', '', 0, now(),
		now() - $2::text::interval FROM generate_series(1, $1::integer) AS n`, n, ago)
}

func (w *world) kept() int {
	return query[int](w, `SELECT count(*) FROM messaging.app_outbox_sent`)
}

// TestNobodyMaintainsWithoutBeingAllowedTo checks the right to call the function, since it deletes
// with the rights of its owner.
func TestNobodyMaintainsWithoutBeingAllowedTo(t *testing.T) {
	t.Parallel()
	w, store := retaining(t)
	role := w.role()
	w.exec(`GRANT USAGE ON SCHEMA messaging TO ` + role + `; GRANT INSERT ON messaging.app_outbox
		TO ` + role)
	w.maintain(store)
	w.keptSince(5, "1 hour")
	_, err := w.as(role).Exec(t.Context(), `SELECT messaging.app_outbox_maintain('0')`)
	if !isCode(err, "42501") {
		t.Errorf("got error %v, want permission denied", err)
	}
	w.equal("published events kept", w.kept(), 5)
	// Everybody may call those functions of the migrations that neither read nor change a row, and
	// no others.
	w.equal("functions that everybody may call", query[string](w, `SELECT string_agg(proname, ' '
		ORDER BY proname) FROM pg_proc
		WHERE pronamespace = 'messaging'::regnamespace AND has_function_privilege('`+role+
		`', oid, 'EXECUTE')`),
		"app_outbox_readable app_outbox_text")
}

func TestARetentionThatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	w, store := retaining(t)
	w.maintain(store)
	w.keptSince(5, "1 hour")
	for _, retention := range []string{`'-10 days'`, `NULL`, `'101 years'`, `'1 month -40 days'`} {
		_, err := w.pool.Exec(t.Context(), `SELECT messaging.app_outbox_maintain(`+retention+`)`)
		if !isCode(err, "22023") {
			t.Errorf("retention %s: got error %v, want an invalid parameter", retention, err)
		}
	}
	w.equal("published events kept", w.kept(), 5)
}

// TestMaintenanceTrustsNoOtherSchema has another role create functions and tables that could be
// called in place of the real ones by a caller with more rights.
func TestMaintenanceTrustsNoOtherSchema(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addRetention()
	w.exec(`CREATE TABLE caught (what text);
		CREATE FUNCTION trap() RETURNS text LANGUAGE plpgsql
		AS 'BEGIN INSERT INTO public.caught VALUES (current_query()); RETURN ''x''; END';
		CREATE FUNCTION to_char(timestamptz, text) RETURNS text LANGUAGE sql
		AS 'SELECT public.trap()';
		CREATE FUNCTION to_char(date, text) RETURNS text LANGUAGE sql AS 'SELECT public.trap()';
		CREATE FUNCTION format(text, text, text) RETURNS text LANGUAGE sql
		AS 'SELECT public.trap()';
		CREATE FUNCTION format(text, text[]) RETURNS text LANGUAGE sql AS 'SELECT public.trap()';
		CREATE FUNCTION quote_ident(text) RETURNS text LANGUAGE sql AS 'SELECT public.trap()'`)
	tx := w.begin()
	_, err := tx.Exec(t.Context(), `CREATE TEMP TABLE outbox_meta AS SELECT * FROM outbox_meta;
		CREATE TEMP TABLE outbox_sent_default AS SELECT * FROM outbox_sent_default;
		SET LOCAL search_path = pg_temp, public;
		SELECT public.outbox_maintain('2 days')`)
	w.must(err)
	w.must(tx.Commit(t.Context()))
	w.equal("functions of others that were called", query[int](w, `SELECT count(*) FROM caught`), 0)
	w.equal("agreed", query[string](w, `SELECT retention::text FROM public.outbox_meta`), "2 days")
	w.equal("partitions", query[int](w, `SELECT count(*) FROM pg_inherits
		WHERE inhparent = 'outbox_sent'::regclass`), 4)
}

// TestMaintenanceBesideAPublicationForAllTables creates the publication that change data capture
// needs: PostgreSQL then requires a replica identity of every table.
func TestMaintenanceBesideAPublicationForAllTables(t *testing.T) {
	t.Parallel()
	for _, with := range []string{"", "WITH (publish_via_partition_root = true)"} {
		t.Run(with, func(t *testing.T) {
			t.Parallel()
			w, store := retaining(t)
			w.keptSince(10, "3 days")
			w.addPartition(-9)
			w.exec(`CREATE PUBLICATION everything FOR ALL TABLES ` + with)
			w.maintain(store)
			w.equal("partitions", w.partitions(), "0 1 2")
			w.equal("kept", w.kept(), 0)
			w.keepEvents(20)
			w.equal("published", w.relayAll(store).Published, 20)
			// An operator deletes from a partition that was created after the publication.
			w.exec(`DELETE FROM messaging.app_outbox_sent`)
		})
	}
}

// TestEveryTableHasAReplicaIdentity checks the tables that will be created later, too.
func TestEveryTableHasAReplicaIdentity(t *testing.T) {
	t.Parallel()
	w, store := retaining(t)
	w.maintain(store)
	w.equal("tables without one", query[string](w, `SELECT COALESCE(string_agg(c.relname, ' '), '')
		FROM pg_class c
		WHERE c.relnamespace = 'messaging'::regnamespace AND c.relkind IN ('r', 'p')
		AND c.relreplident <> 'f'
		  AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)`), "")
}

// TestTheDocumentedRightsSuffice shows that without a schema of its own, only retention needs more
// rights.
func TestTheDocumentedRightsSuffice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	relay := w.role()
	w.exec(`GRANT SELECT, INSERT, UPDATE, DELETE ON outbox, outbox_relay, outbox_shard, outbox_dead
		TO ` + relay + `;
		GRANT SELECT ON SEQUENCE outbox_seq TO ` + relay) // as docs/operating.md says
	store := events.NewStore(w.as(relay))
	w.maintain(store)
	w.enqueue(manyThings(20)...)
	w.equal("published", w.relayAll(store).Published, 20)
	w.equal("pending", w.countBacklog(store).Pending, 0)

	// With a retention it reports each task that it could not do.
	w.addRetention()
	w.exec(`GRANT SELECT, INSERT ON outbox_sent TO ` + relay + `;
		GRANT EXECUTE ON FUNCTION outbox_maintain TO ` + relay)
	w.equal("problems without anything to do", query[string](&world{T: t, pool: w.as(relay)},
		`SELECT problems FROM outbox_maintain('0')`), "")
	w.equal("problems", query[string](&world{T: t, pool: w.as(relay)}, `SELECT problems
		FROM outbox_maintain('1 day')`),
		"agree on a retention: permission denied for table outbox_meta; "+
			"make a partition for "+w.day(0)+": permission denied for table outbox_sent_default; "+
			"make a partition for "+w.day(1)+": permission denied for table outbox_sent_default; "+
			"make a partition for "+w.day(2)+": permission denied for table outbox_sent_default")
}

// addRetention adds the tables of published events, as for a catalogue that turns retention on.
func (w *world) addRetention() {
	w.Helper()
	names, err := filepath.Glob("../orders/db/migrations/*_outboxgen_retention_1.sql")
	w.must(err)
	w.equal("migrations of retention", len(names), 1)
	text, err := os.ReadFile(names[0])
	w.must(err)
	up, _, _ := strings.Cut(string(text), "-- +goose Down")
	w.exec(up)
}

// day returns a day, as an offset from today, in the server's notation.
func (w *world) day(n int) string {
	w.Helper()
	return query[string](w,
		`SELECT to_char((now() AT TIME ZONE 'UTC')::date + $1::integer, 'YYYY-MM-DD')`, n)
}

// TestMaintenanceDoesWhatItCan shows that a task that fails does not keep the others from being
// done.
func TestMaintenanceDoesWhatItCan(t *testing.T) {
	t.Parallel()
	w, store := retaining(t)
	w.keptSince(10, "3 days")
	w.addPartition(-9)
	w.addPartition(-8)
	old := query[string](w, `SELECT to_char((now() AT TIME ZONE 'UTC')::date - 9, 'YYYYMMDD')`)
	w.exec(`CREATE VIEW report AS SELECT count(*) FROM messaging.app_outbox_sent_` + old)
	w.wants(w.tryMaintain(store), "drop app_outbox_sent_"+old, "other objects depend on it")
	w.equal("partitions", w.partitions(), "-9 0 1 2")
	w.equal("kept", w.kept(), 0)
	w.exec(`DROP VIEW report`)
	w.maintain(store)
	w.equal("partitions", w.partitions(), "0 1 2")
}

// TestAPartitionWhoseNameIsTakenGetsAnother has the name taken by another role's table, or by a
// partition that was detached by hand.
func TestAPartitionWhoseNameIsTakenGetsAnother(t *testing.T) {
	t.Parallel()
	w, store := retaining(t)
	tomorrow := query[string](w, `SELECT to_char((now() AT TIME ZONE 'UTC')::date + 1, 'YYYYMMDD')`)
	today := query[string](w, `SELECT to_char((now() AT TIME ZONE 'UTC')::date, 'YYYYMMDD')`)
	w.exec(`CREATE TABLE messaging.app_outbox_sent_` + tomorrow + ` (mine text)`)
	w.maintain(store)
	w.keepEvents(10)
	w.equal("published", w.relayAll(store).Published, 10)
	w.exec(`ALTER TABLE messaging.app_outbox_sent DETACH PARTITION messaging.app_outbox_sent_` +
		today)
	for range 2 {
		w.maintain(store)
	}
	w.equal("partitions", query[string](w, `SELECT string_agg(inhrelid::regclass::text, ' '
		ORDER BY inhrelid::regclass::text) FROM pg_inherits
		WHERE inhparent = 'messaging.app_outbox_sent'::regclass
		AND inhrelid::regclass::text LIKE '%\_2'`),
		"messaging.app_outbox_sent_"+today+"_2 messaging.app_outbox_sent_"+tomorrow+"_2")
	w.equal("rows of the detached one", query[int](w, `SELECT count(*)
		FROM messaging.app_outbox_sent_`+today), 10)
	w.keepEvents(10)
	w.equal("published", w.relayAll(store).Published, 10)
	w.equal("kept in the default partition", query[int](w, `SELECT count(*)
		FROM messaging.app_outbox_sent_default`), 0)
}

// TestPartitionsOfAnOperatorsAreLeftAlone creates partitions by hand, for ranges other than a day
// and under other names.
func TestPartitionsOfAnOperatorsAreLeftAlone(t *testing.T) {
	t.Parallel()
	w, store := retaining(t)
	w.exec(`CREATE TABLE messaging.archive PARTITION OF messaging.app_outbox_sent FOR
		VALUES FROM (MINVALUE) TO ('2020-01-01 00:00:00+00')`)
	w.exec(fmt.Sprintf(`CREATE TABLE messaging.wide PARTITION OF messaging.app_outbox_sent FOR
		VALUES FROM ('%s 00:00:00+00') TO (MAXVALUE)`, w.day(1)))
	w.maintain(store)
	w.equal("partitions by day", w.partitions(), "0")
	w.equal("all partitions", query[int](w, `SELECT count(*) FROM pg_inherits
		WHERE inhparent = 'messaging.app_outbox_sent'::regclass`), 4)
}

// TestMaintenanceInAHardenedDatabase has a database in which nobody may create in schema public,
// sessions have unusual settings, and an event trigger watches DDL.
func TestMaintenanceInAHardenedDatabase(t *testing.T) {
	t.Parallel()
	w, _ := retaining(t)
	w.exec(`REVOKE CREATE ON SCHEMA public FROM PUBLIC;
		CREATE FUNCTION watch() RETURNS event_trigger LANGUAGE plpgsql AS
			'BEGIN
				IF tg_tag = ''ALTER TABLE'' THEN RAISE EXCEPTION ''not on my watch''; END IF;
			END';
		CREATE EVENT TRIGGER watched ON ddl_command_end EXECUTE FUNCTION watch()`)
	w.setting("TimeZone", "Asia/Kathmandu")
	w.setting("DateStyle", "German, DMY")
	w.setting("search_path", "nowhere")
	store := prefixed.NewStore(w.pool)
	w.keptSince(10, "3 days")
	w.wants(w.tryMaintain(store), "make a partition for "+w.day(0), "not on my watch")
	w.equal("kept", w.kept(), 0)
	w.exec(`DROP EVENT TRIGGER watched`)
	w.maintain(store)
	w.equal("partitions", w.partitions(), "0 1 2")
}

// TestCleaningUpGoesInSmallSteps shows that one call of the function deletes at most 5,000 rows or
// drops ten partitions, so that it fits a short statement_timeout.
func TestCleaningUpGoesInSmallSteps(t *testing.T) {
	t.Parallel()
	w, _ := retaining(t)
	w.keptSince(12_000, "400 days")
	for day := range 15 {
		w.addPartition(-40 - day)
	}
	var steps []string
	for more := true; more; {
		w.must(w.pool.QueryRow(t.Context(), `SELECT more
			FROM messaging.app_outbox_maintain('1 day')`).Scan(&more))
		steps = append(steps, fmt.Sprint(w.kept(), "/", strings.Count(w.partitions(), "-")))
	}
	w.equal("rows and old partitions left after each call", strings.Join(steps, ", "),
		"7000/5, 2000/0, 0/0")
}

// TestTheLongestRetentionOfADayCounts has relays of two releases ask for different retentions while
// one release replaces the other.
func TestTheLongestRetentionOfADayCounts(t *testing.T) {
	t.Parallel()
	w, _ := retaining(t)
	ask := func(retention string) string {
		w.exec(`SELECT messaging.app_outbox_maintain($1::text::interval)`, retention)
		return query[string](w, `SELECT extract(epoch FROM retention)::bigint / 3600 || ' h'
			FROM messaging.app_outbox_meta`)
	}
	dayPasses := func() {
		w.exec(`UPDATE messaging.app_outbox_meta
			SET retention_asked_at = retention_asked_at - interval '25 hours'`)
	}
	w.equal("nobody keeps anything", ask("0"), "0 h")
	w.equal("a longer one counts at once", ask("72 hours"), "72 h")
	w.addPartition(-1)
	w.keptSince(1, "25 hours")
	w.equal("a shorter one does not", ask("0"), "72 h")
	w.equal("nor does another", ask("48 hours"), "72 h")
	w.equal("kept", w.kept(), 1)
	dayPasses()
	w.equal("the longer one is asked for again", ask("72 hours"), "72 h")
	w.equal("and still counts", ask("0"), "72 h")
	dayPasses()
	w.equal("of the shorter ones, the longest comes next, whoever asks", ask("0"), "48 h")
	w.equal("kept", w.kept(), 1)
	dayPasses()
	w.equal("and then the shortest", ask("0"), "0 h")
	w.equal("kept", w.kept(), 0)
}
