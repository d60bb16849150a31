package upgrade_test

import (
	"errors"
	"log/slog"
	"maps"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// TestUpgradeAndBackWhileBothReleasesAreAtWork has 100,000 events pending, and relays and producers
// of both releases at work, when the tables change to the next version and back.
func TestUpgradeAndBackWhileBothReleasesAreAtWork(t *testing.T) {
	t.Parallel()
	const walks, stepsEach = 100, 1000
	w := newWorld(t)
	w.migrate(before)
	want := map[int64]int64{}
	for walk := range int64(walks) {
		w.inTx(func(tx pgx.Tx) error { return w.enqueueOld(t.Context(), tx, walk, 0, stepsEach) })
		want[walk] = stepsEach
	}
	published := newStream()
	slow := outbox.Config{Concurrency: 16, MaxInFlight: 256}

	oldRelay := w.run(w.old, published, slow)
	oldProducer := w.produce(1000, w.enqueueOld)
	w.eventually("the old relay is at work",
		func() bool { return oldRelay.Stats().Published > 500 })
	w.migrate(before + 1)
	pendingUp := w.count(`SELECT count(*) FROM outbox`)
	if pendingUp < walks*stepsEach/2 {
		t.Fatalf("only %d events were pending after the migration", pendingUp)
	}
	nextRelay := w.run(w.next, published, slow)
	nextProducer := w.produce(2000, w.enqueueNext)
	afterUp := oldRelay.Stats().Published
	w.eventually("both relays are at work on the new tables", func() bool {
		return nextRelay.Stats().Published > 500 && oldRelay.Stats().Published > afterUp+500
	})

	nextRelay.stop()
	maps.Copy(want, nextProducer.stop())
	w.migrate(before)
	pendingDown := w.count(`SELECT count(*) FROM outbox`)
	if pendingDown == 0 {
		t.Fatal("no event was pending after the way back")
	}
	afterDown := oldRelay.Stats().Published
	w.eventually("the old relay is at work on the old tables",
		func() bool { return oldRelay.Stats().Published > afterDown+500 })

	// Migrate up once more, and continue with the next release alone.
	w.migrate(before + 1)
	oldRelay.stop()
	maps.Copy(want, oldProducer.stop())
	published.fast.Store(true)
	lastRelay := w.run(w.next, published, outbox.Config{})
	w.eventually("nothing is pending",
		func() bool { return w.count(`SELECT count(*) FROM outbox`) == 0 })
	lastRelay.stop()

	total := 0
	for walk, steps := range want {
		total += int(steps)
		if got := published.steps[walk]; got != steps {
			t.Errorf("walk %d: %d steps were published, %d enqueued", walk, got, steps)
		}
	}
	if len(published.faults) > 0 || len(published.ids) != total {
		t.Errorf("got %d events of %d, and %v", len(published.ids), total, published.faults)
	}
	if n := w.count(`SELECT count(*) FROM outbox_sent`); n != total {
		t.Errorf("%d events stand in outbox_sent, want %d", n, total)
	}
	if n := w.count(`SELECT count(*) FROM outbox_dead`); n != 0 {
		t.Errorf("got %d dead letters", n)
	}
	t.Logf("%d events; %d were pending after the way up, %d after the way down; %d published twice",
		total, pendingUp, pendingDown, published.again)
	lost := int64(0)
	for _, relay := range []*process{oldRelay, nextRelay, lastRelay} {
		lost += relay.Stats().LostSettles + relay.Stats().LeasesLost
	}
	if lost == 0 && published.again > 0 {
		t.Errorf("%d events were published twice, though no relay lost its lease", published.again)
	}
}

// wraps fails the test unless an error wraps another one.
func (w *world) wraps(err, wrapped error) {
	w.Helper()
	if !errors.Is(err, wrapped) {
		w.Errorf("got error %v, want one that wraps %q", err, wrapped)
	}
}

// claims has both inboxes claim an event, and returns the stores' errors.
func (w *world) claims() (byOld, byNext error) {
	w.Helper()
	event := outbox.ID{1}
	_, byOld = w.old.InTx(w.Context(), inbox.InTxParams[pgx.Tx]{Run: func(tx pgx.Tx) error {
		_, err := w.old.Claim(w.Context(), tx, inbox.ClaimParams{Consumer: "old", Event: event})
		return err
	}})
	_, byNext = w.next.InTx(w.Context(), inbox.InTxParams[pgx.Tx]{Run: func(tx pgx.Tx) error {
		_, err := w.next.Claim(w.Context(), tx, inbox.ClaimParams{Consumer: "next", Event: event})
		return err
	}})
	return byOld, byNext
}

// relays runs both relays once, and returns their errors.
func (w *world) relays() (byOld, byNext error) {
	w.Helper()
	once := func(store storage.Store) error {
		config := outbox.Config{Logger: slog.New(slog.DiscardHandler)}
		relay, err := outbox.NewRelay(store, newStream(), config)
		w.must(err)
		_, err = relay.RunOnce(w.Context())
		if err != nil { // Run returns it at once, too
			w.wraps(relay.Run(w.Context()), outbox.ErrUnusable)
		}
		return err
	}
	return once(w.old), once(w.next)
}

// TestCodeIsRefusedByADatabaseThatDoesNotSuit, with an error that has both versions and the missing
// migration.
func TestCodeIsRefusedByADatabaseThatDoesNotSuit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)

	byOld, byNext := w.relays()
	for _, err := range []error{byOld, byNext} {
		w.says(err, outbox.ErrMigrationMissing, "do not exist", "migrations",
			"_outboxgen_outbox_1.sql")
		w.wraps(err, outbox.ErrUnusable)
	}
	byOld, byNext = w.claims()
	w.says(byOld, outbox.ErrMigrationMissing, "do not exist", "_outboxgen_outbox_1.sql")
	w.says(byNext, outbox.ErrMigrationMissing, "do not exist", "_outboxgen_outbox_1.sql")

	w.migrate(before)
	byOld, byNext = w.relays()
	w.must(byOld)
	w.says(byNext, outbox.ErrMigrationMissing, `"outbox" have version 1`, "needs version 2",
		"_outboxgen_outbox_2.sql of migrations")
	byOld, byNext = w.claims()
	w.must(byOld)
	w.says(byNext, outbox.ErrMigrationMissing, `"outbox" have version 1`, "needs version 2")

	w.migrate(before + 1)
	byOld, byNext = w.relays()
	w.must(errors.Join(byOld, byNext))
	byOld, byNext = w.claims()
	w.must(errors.Join(byOld, byNext))
	if n := w.count(`SELECT count(*) FROM inbox`); n != 2 {
		t.Errorf("got %d events claimed, want one of each consumer", n)
	}

	// This is what a later release does once the oldest one is no longer deployed.
	w.exec(`DELETE FROM inbox;
		UPDATE outbox_schema SET version = 3, min_compatible = 2 WHERE feature = 'outbox'`)
	byOld, byNext = w.relays()
	w.must(byNext)
	w.says(byOld, outbox.ErrUnusable, `"outbox" have version 3`, "version 2 or newer",
		"code is of version 1")
	byOld, byNext = w.claims()
	w.must(byNext)
	w.says(byOld, outbox.ErrUnusable, `"outbox" have version 3`, "code is of version 1")
	if errors.Is(byOld, outbox.ErrMigrationMissing) {
		t.Error("no migration makes the old release work again")
	}
}

// TestARelayWaitsForTheMigration starts a relay on an empty database, as happens if a deploy starts
// relay and migrations at once.
func TestARelayWaitsForTheMigration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var log logbook
	published := newStream()
	relay := w.run(w.next, published, outbox.Config{
		WaitForSchema: true, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	w.eventually("it says what it waits for",
		func() bool { return strings.Contains(log.String(), "_outboxgen_outbox_1.sql") })
	w.migrate(before)
	w.migrate(before + 1)
	w.inTx(func(tx pgx.Tx) error { return w.enqueueNext(t.Context(), tx, 1, 0, 3) })
	w.eventually("it publishes", func() bool { return published.published() == 3 })
	relay.stop()
	text := log.String()
	if strings.Count(text, "\n") != 2 || !strings.Contains(text, "works again") {
		t.Errorf("want one line that it waits and one that it works again, got:\n%s", text)
	}
}
