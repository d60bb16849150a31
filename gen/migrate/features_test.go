package migrate_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/lock"
	"github.com/outboxgen/outboxgen/gen/output"
)

// written returns the migrations that the lock lists, as feature, version and file.
func (w *world) written() string {
	var all []string
	for _, m := range w.known {
		all = append(all, fmt.Sprintf("%s %d %s", m.Feature, m.Version, m.File))
	}
	return strings.Join(all, "\n")
}

func TestEachFeatureBringsItsMigrationsWhenItIsUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "goose")
	w.generate()
	before := maps.Clone(w.disk)
	w.put("db/00003_orders.sql", "CREATE TABLE orders (id uuid PRIMARY KEY);\n")

	w.catalogue.Database.Features = catalogue.Features()
	w.generate()
	want := "outbox 1 db/00001_outboxgen_outbox_1.sql\noutbox 2 db/00002_outboxgen_outbox_2.sql\n" +
		"inbox 1 db/00004_outboxgen_inbox_1.sql\nretention 1 db/00005_outboxgen_retention_1.sql"
	if got := w.written(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for path, f := range before {
		if string(w.disk[path].Data) != string(f.Data) {
			t.Errorf("%s was rewritten", path)
		}
	}

	// If the lock is lost, all of them are found, whatever they are called.
	for i, path := range []string{
		"db/00001_outboxgen_outbox_1.sql", "db/00005_outboxgen_retention_1.sql",
	} {
		w.put(fmt.Sprintf("db/%05d_moved.sql", 20-i), string(w.disk[path].Data))
		delete(w.disk, path)
	}
	known := w.written()
	w.known, w.database = nil, lock.Database{}
	files := len(w.disk)
	w.generate()
	want = strings.NewReplacer("00001_outboxgen_outbox_1", "00020_moved",
		"00005_outboxgen_retention_1", "00019_moved").Replace(known)
	if got := w.written(); got != want || len(w.disk) != files {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// If the lock is lost, nothing records the migrations of features that the catalogue no longer has.
func TestTheMigrationsOfAFeatureThatIsNotUsedAreNoStrangers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "plain")
	w.catalogue.Database.Features = catalogue.Features()
	w.generate()
	w.known, w.database = nil, lock.Database{}
	w.catalogue.Database.Features = []catalogue.Feature{catalogue.FeatureOutbox}
	w.generate()
	if got := w.written(); strings.Contains(got, "retention") || len(w.disk) != 4 {
		t.Errorf("got\n%s\nand %d files", got, len(w.disk))
	}
}

func TestAnEditedMigrationOfAFeatureIsRefused(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		w := newWorld(t, "goose")
		w.catalogue.Database.Features = catalogue.Features()
		w.generate()
		for _, m := range w.known {
			text := string(w.disk[m.File].Data)
			w.put(m.File, strings.Replace(text, "Up\n", "Up\nDROP TABLE x;\n", 1))
			known := w.known
			if lost {
				w.known = nil
			}
			if d := w.wantRule(diag.MigrationImmutable); d.Pos.File != m.File {
				t.Errorf("lock lost: %t: got position %+v, want %s", lost, d.Pos, m.File)
			}
			w.known = known
			w.put(m.File, text)
		}
	}
}

// TestTheOneMigrationOfBeforeStaysAsItIs: it made the tables of all features, and the versions that
// have come since follow it.
func TestTheOneMigrationOfBeforeStaysAsItIs(t *testing.T) {
	t.Parallel()
	const text = "-- " + output.Marker + "\n\n-- +goose Up\nCREATE TABLE \"outbox\" ();\n"
	w := newWorld(t, "goose").put("db/00001_outboxgen.sql", text)
	w.catalogue.Database.Features = catalogue.Features()
	for _, f := range catalogue.Features() {
		w.known = append(w.known, lock.Migration{
			Feature: f, Version: 1, File: "db/00001_outboxgen.sql", Format: "goose",
			Hash: output.Hash([]byte(text)), Statements: "those of before",
		})
	}
	w.database = lock.Normalise(&w.catalogue).Database
	known := slices.Clone(w.known)
	for range 2 {
		w.generate()
		for _, m := range known {
			if !slices.Contains(w.known, m) {
				t.Errorf("got\n%s\nwithout %s as it was", w.written(), m.Feature)
			}
		}
		if got := w.written(); !strings.Contains(got, "outbox 2 db/00002_outboxgen_outbox_2.sql") ||
			len(w.disk) != 2 || string(w.disk["db/00001_outboxgen.sql"].Data) != text {
			t.Errorf("got\n%s\nand %d files", got, len(w.disk))
		}
	}
	w.disk["db/00007_outboxgen.sql"] = w.disk["db/00001_outboxgen.sql"]
	delete(w.disk, "db/00001_outboxgen.sql")
	if w.generate(); strings.Count(w.written(), "db/00007_outboxgen.sql") != 3 {
		t.Errorf("renumbered: got\n%s", w.written())
	}
	w.disk["db/00007_outboxgen.sql"] = &fstest.MapFile{Data: []byte(text + "DROP TABLE x;\n")}
	w.wantRule(diag.MigrationImmutable, "edited")
}
