package failures_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	prefixed "github.com/outboxgen/outboxgen/examples/conformance/prefixed/events"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

func isCode(err error, code string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == code
}

// keepEvents commits events of the catalogue that retains published events.
func (w *world) keepEvents(n int) {
	w.Helper()
	w.must(pgx.BeginFunc(w.Context(), w.pool, func(tx pgx.Tx) error {
		list := make([]prefixed.Event, n)
		for i := range list {
			list[i] = prefixed.ThingHappenedV1{Entity: fmt.Sprint("key ", i%7), N: int64(i)}
		}
		_, err := prefixed.NewStore(w.pool).Enqueue(w.Context(), tx, list...)
		return err
	}))
}

// relayAll publishes all that is pending, once, without maintenance.
func (w *world) relayAll(store storage.Store) outbox.Stats {
	w.Helper()
	relay, err := outbox.NewRelay(store, &outboxtest.RecordingPublisher{}, quick())
	w.must(err)
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	s, err := relay.RunOnce(ctx)
	w.must(err)
	return s
}

// partitions returns the partitions by day, in order, as a number of days from today.
func (w *world) partitions() string {
	w.Helper()
	return query[string](w, `SELECT COALESCE(string_agg((
			to_date(right(c.relname, 8), 'YYYYMMDD') - (now() AT TIME ZONE 'UTC')::date
		)::text, ' ' ORDER BY c.relname), '')
		FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = 'messaging.app_outbox_sent'::regclass AND c.relname ~ '_[0-9]{8}$'`)
}

func (w *world) addPartition(daysFromNow int) {
	w.Helper()
	w.exec(fmt.Sprintf(`DO $$ DECLARE day date := (now() AT TIME ZONE 'UTC')::date + %d; BEGIN
		EXECUTE format('CREATE TABLE messaging.%%I PARTITION OF messaging.app_outbox_sent
				FOR VALUES FROM (%%L) TO (%%L)', 'app_outbox_sent_' || to_char(day, 'YYYYMMDD'),
			day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
	END $$`, daysFromNow))
}

func TestWithoutAPartitionForTodayEventsAreSettledAllTheSame(t *testing.T) {
	t.Parallel()
	w, store := retaining(t)
	w.equal("partitions", w.partitions(), "")
	w.keepEvents(100)
	w.equal("published", w.relayAll(store).Published, 100)
	w.equal("kept", query[int](w, `SELECT count(*) FROM messaging.app_outbox_sent_default`), 100)
	w.maintain(store) // it cannot create a partition for today any more
	w.equal("partitions", w.partitions(), "1 2")
	w.keepEvents(1)
	w.equal("published", w.relayAll(store).Published, 1)
}

func TestPartitionsAreMadeAheadAndDroppedAfterTheRetention(t *testing.T) {
	t.Parallel()
	w, store := retaining(t)
	for _, day := range []int{-30, -3, -2, -1} { // the retention is one day
		w.addPartition(day)
	}
	w.maintain(store)
	w.equal("partitions", w.partitions(), "-1 0 1 2")
	w.keepEvents(10)
	w.equal("published", w.relayAll(store).Published, 10)
	w.equal("kept in the partition of today",
		query[int](w, `SELECT count(*) FROM messaging.app_outbox_sent`), 10)
	w.equal("kept in the default one",
		query[int](w, `SELECT count(*) FROM messaging.app_outbox_sent_default`), 0)
}

// TestJanitorsDoNotDeadlock has four maintenance calls begin at the same moment, while events are
// settled into the partitions that they create.
func TestJanitorsDoNotDeadlock(t *testing.T) {
	t.Parallel()
	w, store := retaining(t)
	relay, _ := w.run(store, &outboxtest.RecordingPublisher{}, quick())
	w.eventually("the relay's own has been there", func() bool { return w.partitions() == "0 1 2" })
	const events, rounds = 1500, 15
	for n := range rounds {
		w.addPartition(-30 - 2*n)
		w.addPartition(-31 - 2*n)
		var janitors sync.WaitGroup
		for range 4 {
			janitors.Go(func() {
				if err := w.tryMaintain(store); err != nil {
					t.Error(err)
				}
			})
		}
		w.keepEvents(events / rounds)
		janitors.Wait()
	}
	w.eventually("all is settled", func() bool { return relay.Stats().Published == events })
	w.maintain(store)
	w.equal("old partitions are left", strings.Contains(w.partitions(), "-3"), false)
	w.equal("kept", query[int](w, `SELECT count(*) FROM messaging.app_outbox_sent`), events)
}

// TestTheRelaysRoleNeedsNoRightToCreateTables runs a relay as a role that may only change rows,
// read the sequence and call the maintenance function.
func TestTheRelaysRoleNeedsNoRightToCreateTables(t *testing.T) {
	t.Parallel()
	w, _ := retaining(t)
	role := w.role()
	// These are the rights that docs/operating.md names.
	w.exec(`GRANT USAGE ON SCHEMA messaging TO ` + role + `;
		GRANT SELECT, INSERT, UPDATE, DELETE ON messaging.app_outbox, messaging.app_outbox_relay,
			messaging.app_outbox_shard, messaging.app_outbox_dead TO ` + role + `;
		GRANT SELECT, INSERT ON messaging.app_outbox_sent TO ` + role + `;
		GRANT SELECT ON SEQUENCE messaging.app_outbox_seq TO ` + role + `;
		GRANT EXECUTE ON FUNCTION messaging.app_outbox_maintain TO ` + role)
	w.addPartition(-30)
	store := prefixed.NewStore(connect(t, w.url, func(c *pgxpool.Config) {
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, `SET ROLE `+role)
			return err
		}
	}))
	w.maintain(store)
	w.equal("partitions", w.partitions(), "0 1 2")
	w.keepEvents(10)
	w.equal("published", w.relayAll(store).Published, 10)
}

// TestCleaningUpGoesInChunks shows that the rows of the default partition are deleted in small
// batches and never in one long transaction.
func TestCleaningUpGoesInChunks(t *testing.T) {
	t.Parallel()
	w, store := retaining(t)
	const rows = 120_000
	w.exec(`INSERT INTO messaging.app_outbox_sent (shard, seq, id, type, version, topic, key,
			payload, content_type, attempts, created_at, sent_at)
		SELECT 0, n, gen_random_uuid(), 't', 1, 't', '', '', '', 0, now(), now() - interval '3 days'
		FROM generate_series(1, $1::integer) AS n`, rows)
	left := rows
	for calls := 0; left > 0; calls++ {
		w.maintain(store)
		now := query[int](w, `SELECT count(*) FROM messaging.app_outbox_sent_default`)
		if deleted := left - now; deleted <= 0 || deleted > 50_000 {
			t.Fatalf("call %d deleted %d of %d rows, want some, and at most 50,000", calls+1,
				deleted, left)
		}
		left = now
	}
}
