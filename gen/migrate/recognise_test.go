package migrate_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/lock"
	"github.com/outboxgen/outboxgen/gen/migrate"
)

// put writes a file, and returns the world for more.
func (w *world) put(path, text string) *world {
	w.disk[path] = &fstest.MapFile{Data: []byte(text)}
	return w
}

// generated returns a world whose migration is on disk, and what it is.
func generated(t *testing.T, format string) (w *world, path, text string) {
	w = newWorld(t, format)
	w.generate()
	path, text = w.first()
	return w, path, text
}

// rewritten are ways in which a team stores the migration without changing what it does.
var rewritten = map[string]func(string) string{
	"as it was":          func(s string) string { return s },
	"with CRLF":          func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
	"with a comment":     func(s string) string { return "-- Reviewed.\n" + s + "-- The end.\n" },
	"without our header": func(s string) string { return s[strings.Index(s, "\n")+1:] },
	"with other white": func(s string) string {
		return strings.ReplaceAll(s, "\n    ", "\n\t ")
	},
	"without final newline": func(s string) string { return strings.TrimSpace(s) },
}

func TestAMigrationIsKnownByWhatItContains(t *testing.T) {
	t.Parallel()
	for _, format := range catalogue.MigrationFormats() {
		for how, rewrite := range rewritten {
			for _, name := range []string{
				"db/00007_outboxgen_outbox_1.sql", "db/20261130120000_create_outbox.up.sql",
			} {
				for _, lost := range []bool{false, true} {
					w, path, text := generated(t, format)
					delete(w.disk, path)
					w.put(name, rewrite(text)).put("db/00003_orders.sql",
						"CREATE TABLE orders (id uuid PRIMARY KEY);\n")
					if lost {
						w.known, w.database = nil, lock.Database{}
					}
					r, err := w.plan()
					if err != nil || r.Files[0].Path != name ||
						string(r.Files[0].Data) != rewrite(text) {
						t.Errorf("%s %s, lock lost: %t: %s: got %v and %d files", format, how,
							lost, name, err, len(r.Files))
					} else if r.Known[0].File != name ||
						r.Known[0].Format != format {
						t.Errorf("%s %s: got %+v", format, how, r.Known)
					}
				}
			}
		}
	}
}

// The migration of a tool that outboxgen does not write for yet is the same SQL with that tool's
// lines.
func TestAMigrationIsKnownInTheFormsOfOtherTools(t *testing.T) {
	t.Parallel()
	goose, gooseText := newWorld(t, "goose"), ""
	goose.generate()
	_, gooseText = goose.first()
	_, down, _ := strings.Cut(gooseText, "-- +goose Down\n")
	for tool, lines := range map[string][2]string{
		"dbmate":      {"-- migrate:up\n", "-- migrate:down\n" + down},
		"tern":        {"", "---- create above / drop below ----\n\n" + down},
		"sql-migrate": {"-- +migrate Up\n", "-- +migrate Down\n" + down},
		"atlas":       {"-- Create \"outbox\"\n", ""},
	} {
		w, path, text := generated(t, "plain")
		delete(w.disk, path)
		w.put("db/00001_outbox.sql", lines[0]+text+lines[1])
		if r, err := w.plan(); err != nil || r.Known[0].File != "db/00001_outbox.sql" {
			t.Errorf("%s: got %v", tool, err)
		}
		w.put("db/00001_outbox.sql", lines[0]+text+"-- migrate:down\nDROP TABLE orders;\n")
		w.wantRule(diag.MigrationImmutable, "edited")
	}
}

func TestAMigrationThatStandsTwiceIsRefused(t *testing.T) {
	t.Parallel()
	for how, rewrite := range rewritten {
		w, path, text := generated(t, "goose")
		w.put("db/00002_copy.sql", rewrite(text))
		if d := w.wantRule(diag.MigrationDuplicate, path); d.Pos.File != "db/00002_copy.sql" {
			t.Errorf("%s: got position %+v", how, d.Pos)
		}
		w.put("db/00002_copy.sql",
			strings.Replace(rewrite(text), "CREATE TABLE", "DROP TABLE x;\nCREATE TABLE", 1))
		if d := w.wantRule(diag.MigrationDuplicate,
			"makes the tables"); d.Pos.File != "db/00002_copy.sql" {
			t.Errorf("%s, edited: got position %+v", how, d.Pos)
		}
	}
	// A copy with a lower number is one as well, and with a lost lock there is still one too many.
	w, _, text := generated(t, "plain")
	w.put("db/00000_copy.sql", text)
	w.wantRule(diag.MigrationDuplicate)
	w.known = nil
	w.wantRule(diag.MigrationDuplicate)
}

func TestAnEditedMigrationIsRefusedUnderAnyName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"db/00001_outboxgen_outbox_1.sql", "db/00005_create_outbox.sql"} {
		for how, rewrite := range rewritten {
			w, path, text := generated(t, "goose")
			delete(w.disk, path)
			w.put(name,
				rewrite(strings.Replace(text, "shard        integer", "shard        bigint", 1)))
			if d := w.wantRule(diag.MigrationImmutable, "edited"); d.Pos.File != name ||
				d.Pos.Line == 0 {
				t.Errorf("%s, %s: got position %+v", name, how, d.Pos)
			}
		}
	}
}

func TestAMigrationIsRewrittenForTheToolOfTheCatalogue(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		w, path, text := generated(t, "plain")
		delete(w.disk, path)
		w.put("db/00004_tables.sql", text)
		if w.catalogue.Migrations.Format = "goose"; lost {
			w.known, w.database = nil, lock.Database{}
		}
		w.generate()
		if got, text := w.first(); got != "db/00004_tables.sql" ||
			!strings.Contains(text, "-- +goose Up") {
			t.Errorf("lock lost: %t: got %s:\n%s", lost, got, text)
		}
	}
}

func TestSpecialFilesAreNotRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "goose")
	w.disk["db/00001_pipe.sql"] = &fstest.MapFile{Mode: fs.ModeNamedPipe | 0o600}
	if r, err := w.plan(); err != nil || r.Files[0].Path != "db/00002_outboxgen_outbox_1.sql" {
		t.Errorf("got %v and %v", err, r.Files)
	}
}

func TestTablesKeepTheirNamesWithoutMigrations(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*catalogue.Database){
		func(d *catalogue.Database) { d.Prefix = "x_" }, func(d *catalogue.Database) {
			d.Schema = "messaging"
		},
		func(d *catalogue.Database) { d.Engine = "mysql" },
	} {
		w, path, _ := generated(t, "goose")
		w.catalogue.Migrations = catalogue.Migrations{}
		change(&w.catalogue.Database)
		w.wantRule(diag.TableSameName, path, `makes "outbox"`)
		w.remove()
		if r := w.generate(); len(r.Known) != 0 || len(r.Files) != 0 {
			t.Errorf("once deleted: got %+v", r)
		}
	}
}

// Two catalogues that share a database share the tool that migrates it, and so the directory.
func TestCataloguesOfDifferentTablesShareADirectory(t *testing.T) {
	t.Parallel()
	w, path, text := generated(t, "goose")
	other := migrate.Other{Catalogue: "billing/outbox.yaml", Migrations: w.known}
	w.others, w.known, w.database = []migrate.Other{other}, nil, lock.Database{}
	w.catalogue.Database.Prefix = "shop_"
	for range 2 {
		w.generate()
		if w.known[0].File != "db/00003_outboxgen_outbox_1.sql" ||
			string(w.disk[path].Data) != text {
			t.Fatalf("got %+v and %d files", w.known, len(w.disk))
		}
	}
	// The other is renumbered to where ours was, which somebody has deleted.
	delete(w.disk, path)
	w.put("db/00003_outboxgen_outbox_1.sql", text)
	if w.generate(); w.known[0].File != "db/00005_outboxgen_outbox_1.sql" ||
		string(w.disk["db/00003_outboxgen_outbox_1.sql"].Data) != text {
		t.Errorf("got %+v", w.known)
	}
}

func TestCataloguesOfTheSameTablesDoNotShareADirectory(t *testing.T) {
	t.Parallel()
	w, _, _ := generated(t, "goose")
	w.others = []migrate.Other{{Catalogue: "billing/outbox.yaml", Migrations: w.known}}
	w.known, w.database = nil, lock.Database{}
	w.wantRule(diag.TableSameName, "billing/outbox.yaml", "a prefix or a schema")
}
