package migrate_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/lock"
	"github.com/outboxgen/outboxgen/gen/migrate"
	"github.com/outboxgen/outboxgen/gen/output"
)

// world is a service with migrations, and what its lock records.
type world struct {
	t         *testing.T
	catalogue catalogue.Catalogue
	disk      fstest.MapFS
	known     []lock.Migration
	database  lock.Database
	service   string
	others    []migrate.Other
}

func newWorld(t *testing.T, format string, disk ...string) *world {
	w := &world{t: t, disk: fstest.MapFS{}}
	w.catalogue.File = "outbox.yaml"
	w.catalogue.Database = catalogue.Database{
		Engine: "postgresql", Features: []catalogue.Feature{catalogue.FeatureOutbox},
		Pos: diag.Pos{File: "outbox.yaml", Line: 4, Column: 1},
	}
	w.catalogue.Migrations = catalogue.Migrations{Dir: "db", Format: format}
	for _, name := range disk {
		w.disk[name] = &fstest.MapFile{}
	}
	return w
}

func (w *world) plan() (migrate.Result, error) {
	return migrate.Plan(migrate.Input{
		Catalogue: &w.catalogue, Dir: w.disk, Known: w.known, Database: w.database,
		Service: w.service, Others: w.others,
		Display: func(path string) string { return path },
	})
}

// generate makes a plan, and writes it to disk and into the lock.
func (w *world) generate() migrate.Result {
	w.t.Helper()
	r, err := w.plan()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range r.Files {
		w.disk[f.Path] = &fstest.MapFile{Data: f.Data}
	}
	for _, path := range r.Stale {
		delete(w.disk, path)
	}
	w.known, w.database, w.service = r.Known, lock.Normalise(&w.catalogue).Database,
		w.catalogue.Service
	return r
}

// first returns the path and the text of the first migration in the lock.
func (w *world) first() (path, text string) {
	w.t.Helper()
	path = w.known[0].File
	f := w.disk[path]
	if f == nil || w.known[0].Feature != catalogue.FeatureOutbox || w.known[0].Version != 1 {
		w.t.Fatalf("%s is not on disk, or not the first: %+v", path, w.known)
	}
	return path, string(f.Data)
}

// remove deletes all migrations that the lock lists.
func (w *world) remove() {
	for _, m := range w.known {
		delete(w.disk, m.File)
	}
}

// wantRule makes a plan, and expects a violation of a rule.
func (w *world) wantRule(rule string, in ...string) diag.Diagnostic {
	w.t.Helper()
	_, err := w.plan()
	var v *migrate.Violation
	if !errors.As(err, &v) || v.Diagnostic.Rule != rule {
		w.t.Fatalf("got error %v, want a violation of %s", err, rule)
	}
	for _, want := range in {
		if !strings.Contains(v.Diagnostic.Message+" "+v.Diagnostic.Help, want) {
			w.t.Errorf("got %q and help %q, want %q in it",
				v.Diagnostic.Message, v.Diagnostic.Help, want)
		}
	}
	return v.Diagnostic
}

func TestTheNumberFollowsTheHighest(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		disk []string
		want string
	}{
		{"no directory", nil, "db/00001_outboxgen_outbox_1.sql"},
		{"no migrations", []string{"db/README.md", "db/seed.sql"},
			"db/00001_outboxgen_outbox_1.sql"},
		{"five digits", []string{"db/00001_a.sql", "db/00009_b.sql"},
			"db/00010_outboxgen_outbox_1.sql"},
		{"three digits", []string{"db/001_a.sql", "db/009_b.sql"}, "db/010_outboxgen_outbox_1.sql"},
		{"no padding", []string{"db/9_b.sql", "db/10_c.sql"}, "db/11_outboxgen_outbox_1.sql"},
		{"a full width", []string{"db/99999_b.sql"}, "db/100000_outboxgen_outbox_1.sql"},
		{"timestamps", []string{"db/20261130120000_a.sql", "db/20251130120000_b.sql"},
			"db/20261130120001_outboxgen_outbox_1.sql"},
		{"both", []string{"db/00007_a.sql", "db/20261130120000_a.sql"},
			"db/20261130120001_outboxgen_outbox_1.sql"},
		{"in Go", []string{"db/00001_a.sql", "db/00002_b.go", "db/00003_c_test.go"},
			"db/00003_outboxgen_outbox_1.sql"},
		{"directories", []string{"db/00005_dir.sql/x"}, "db/00001_outboxgen_outbox_1.sql"},
		{"huge", []string{"db/99999999999999999999999_a.sql", "db/1_b.sql"},
			"db/2_outboxgen_outbox_1.sql"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r, err := newWorld(t, "plain", test.disk...).plan()
			if err != nil {
				t.Fatal(err)
			}
			if r.Files[0].Path != test.want || r.Known[0].File != test.want {
				t.Errorf("got %+v, want %s", r.Files, test.want)
			}
		})
	}
}

func TestEveryFormatOfTheLanguageIsWritten(t *testing.T) {
	t.Parallel()
	for _, format := range catalogue.MigrationFormats() {
		w := newWorld(t, format)
		if _, err := w.plan(); err != nil {
			t.Errorf("%s: %v", format, err)
		}
	}
}

func TestGooseHoldsBothDirectionsAndMarksStatements(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "goose")
	w.catalogue.Database.Schema, w.catalogue.Database.Prefix = "messaging", "shop_"
	w.generate()
	_, text := w.first()
	if !output.HasMarker([]byte(text), output.Marker) || strings.Contains(text, "\n\n\n") ||
		!strings.HasSuffix(text, "\n") {
		t.Errorf("no header, or white space to spare:\n%s", text)
	}
	up, down, found := strings.Cut(text, "\n-- +goose Down\n")
	if !found || !strings.Contains(up, "\n-- +goose Up\nCREATE SCHEMA") {
		t.Fatalf("no two directions:\n%s", text)
	}
	begins := strings.Count(up, "\n-- +goose StatementBegin\n")
	ends := strings.Count(up, "\n-- +goose StatementEnd\n")
	if bodies := strings.Count(up, "\nBEGIN\n"); begins != bodies || ends != bodies || bodies == 0 {
		t.Errorf("got %d begins and %d ends for %d bodies", begins, ends, bodies)
	}
	for _, line := range strings.Split(up, "\n") {
		words := strings.Fields(strings.ReplaceAll(line, "(", " "))
		if len(words) > 2 && words[0] == "CREATE" &&
			slices.Contains([]string{"TABLE", "VIEW", "FUNCTION"}, words[1]) &&
			!strings.Contains(line, "PARTITION OF") &&
			!strings.Contains(down, "DROP "+words[1]+" "+words[2]) {
			t.Errorf("down does not drop what this makes: %s", line)
		}
	}
	if strings.Contains(down, "DROP SCHEMA") {
		t.Error("down drops the schema, which others may use")
	}
}

func TestPlainHoldsTheStatementsOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "plain")
	w.generate()
	if _, text := w.first(); strings.Contains(text, "goose") ||
		strings.Contains(text, "DROP FUNCTION") || !output.HasMarker([]byte(text), output.Marker) {
		t.Errorf("got:\n%s", text)
	}
}

func TestAKnownMigrationStaysAsItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "goose")
	w.generate()
	path, text := w.first()

	w.disk["db/00002_later.sql"] = &fstest.MapFile{}
	again := w.generate()
	if again.Files[0].Path != path || string(again.Files[0].Data) != text || len(again.Stale) != 0 {
		t.Errorf("got %s (stale %q), want %s unchanged", again.Files[0].Path, again.Stale, path)
	}
	delete(w.disk, path)
	if r := w.generate(); r.Files[0].Path != path || string(r.Files[0].Data) != text {
		t.Errorf("once deleted: got %s, want %s unchanged", r.Files[0].Path, path)
	}
	w.disk[path] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(text, "\n", "\r\n"))}
	if _, err := w.plan(); err != nil {
		t.Errorf("with other line endings: %v", err)
	}
}

func TestARenumberedMigrationIsTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "goose")
	w.generate()
	path, text := w.first()
	delete(w.disk, path)
	w.disk["db/00002_outboxgen_outbox_1.sql"] = &fstest.MapFile{Data: []byte(text)}

	w.generate()
	if got, _ := w.first(); got != "db/00002_outboxgen_outbox_1.sql" || w.known[0].File != got {
		t.Errorf("got %s, known as %s", got, w.known[0].File)
	}
}

func TestALostLockFindsItsMigrationAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "goose", "db/00001_a.sql")
	w.generate()
	before := w.known
	w.known, w.database = nil, lock.Database{}
	w.generate()
	if !slices.Equal(w.known, before) {
		t.Errorf("got %+v, want %+v", w.known, before)
	}
	w.known, w.database = nil, lock.Database{}
	w.catalogue.Database.Prefix = "x_"
	d := w.wantRule(diag.MigrationImmutable, "does not know it", "restore outboxgen.lock")
	if d.Pos.File != "db/00002_outboxgen_outbox_1.sql" {
		t.Errorf("got position %+v", d.Pos)
	}
}

func TestAnEditedMigrationIsRefusedAtItsLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "goose")
	w.generate()
	path, text := w.first()
	edited := strings.Replace(text, "-- +goose Up\n", "-- +goose Up\nDROP TABLE x;\n", 1)
	w.disk[path] = &fstest.MapFile{Data: []byte(edited)}
	d := w.wantRule(diag.MigrationImmutable, "edited")
	if d.Pos != (diag.Pos{File: path, Line: 4}) {
		t.Errorf("got position %+v, want %s:4", d.Pos, path)
	}
}

func TestRenamedTablesAreRefusedWhereTheyAreNamed(t *testing.T) {
	t.Parallel()
	schema := diag.Pos{File: "outbox.yaml", Line: 6, Column: 11}
	prefix := diag.Pos{File: "outbox.yaml", Line: 7, Column: 11}
	for _, change := range []struct {
		schema, prefix, would string
		at                    diag.Pos
	}{
		{"", "shop_", `"shop_outbox"`, prefix}, {"messaging", "", `"messaging.outbox"`, schema},
		{"messaging", "shop_", `"messaging.shop_outbox"`, schema},
	} {
		w := newWorld(t, "goose")
		w.generate()
		w.catalogue.Database.Schema, w.catalogue.Database.Prefix = change.schema, change.prefix
		d := w.wantRule(diag.TableSameName, change.would, `makes "outbox"`, "delete them and generate again")
		if d.Pos != w.catalogue.Database.Pos {
			t.Errorf("where neither is said: got position %+v", d.Pos)
		}
		w.catalogue.Database.SchemaPos, w.catalogue.Database.PrefixPos = schema, prefix
		if d := w.wantRule(diag.TableSameName); d.Pos != change.at {
			t.Errorf("got position %+v, want %+v", d.Pos, change.at)
		}

		w.remove()
		w.generate()
		if _, text := w.first(); !strings.Contains(text, change.prefix+`outbox"`) {
			t.Error("once deleted, it is not written for the new names")
		}
	}
}

func TestOtherTablesUnderTheSameNamesNeedAMigration(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "goose")
	w.generate()
	path, text := w.first()
	// As if an outboxgen with other tables had written it.
	older := strings.Replace(text, "xid8 ", "xid9 ", 1)
	w.disk[path] = &fstest.MapFile{Data: []byte(older)}
	w.known[0].Hash, w.known[0].Statements = output.Hash([]byte(older)), "other"
	w.wantRule(diag.MigrationNeeded, "makes other tables")
}

func TestAnotherCommentInTheTemplateIsNoOtherTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "goose")
	w.generate()
	path, text := w.first()
	// As if an outboxgen with other comments had written it.
	older := strings.Replace(text, "CREATE TABLE", "-- It is not said better.\nCREATE TABLE", 1)
	w.disk[path] = &fstest.MapFile{Data: []byte(older)}
	w.known[0].Hash = output.Hash([]byte(older))

	w.generate()
	if _, got := w.first(); got != older {
		t.Error("the migration was rewritten")
	}
}

func TestAMovedDirectoryAndAnotherToolKeepTheStatements(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "goose", "db/00001_a.sql")
	w.generate()
	delete(w.disk, "db/00001_a.sql")
	w.catalogue.Migrations.Dir = "sql/migrations"
	w.generate()
	path, text := w.first()
	if path != "sql/migrations/00002_outboxgen_outbox_1.sql" || w.known[0].File != path {
		t.Errorf("got %s, known as %s", path, w.known[0].File)
	}
	w.catalogue.Migrations.Format = "plain"
	w.generate()
	if _, got := w.first(); strings.Contains(got, "goose") || w.known[0].Format != "plain" {
		t.Error("not rewritten for the other tool")
	}
	w.catalogue.Migrations.Format = "goose"
	w.generate()
	if _, got := w.first(); got != text {
		t.Error("not rewritten as it was")
	}
	w.catalogue.Migrations = catalogue.Migrations{}
	if r := w.generate(); len(r.Files) != 0 || len(r.Stale) != 0 || len(r.Known) == 0 {
		t.Errorf("without migrations in the catalogue: got %+v", r)
	}
}

func TestMigrationsOfANewerOutboxgenAreLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "goose")
	w.generate()
	w.known[len(w.known)-1].Version++
	if _, err := w.plan(); err == nil || !strings.Contains(err.Error(), "newer outboxgen") {
		t.Errorf("got error %v", err)
	}
}

// TestAnotherServiceNeedsAPersonsWord: the tables belong to a service, which is the source of every
// event.
func TestAnotherServiceNeedsAPersonsWord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "goose")
	w.catalogue.Service = "shop/orders"
	w.generate()
	path, text := w.first()
	w.catalogue.Service = "shop/it's orders"
	statement := `UPDATE "outbox_meta" SET service = 'shop/it''s orders'`
	d := w.wantRule(diag.MigrationNeeded, `was "shop/orders"`, `is "shop/it's orders" now`,
		statement)
	if d.Pos != w.catalogue.Database.Pos {
		t.Errorf("got position %+v", d.Pos)
	}

	w.disk["db/00002_rename.sql"] = &fstest.MapFile{Data: []byte(
		"-- +goose Up\nUPDATE  \"outbox_meta\"\n  SET service = 'shop/it''s orders'; -- moved\n",
	)}
	for range 2 {
		w.generate()
		if got := string(w.disk[path].Data); got != text {
			t.Fatal("the migration was rewritten")
		}
	}

	delete(w.disk, "db/00002_rename.sql")
	w.generate() // it was said once, and migrations may be squashed
	delete(w.disk, path)
	w.generate()
	if _, got := w.first(); !strings.Contains(got, `('shop/it''s orders')`) {
		t.Error("once deleted, it is not written for the new service")
	}
}
