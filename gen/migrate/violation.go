package migrate

import (
	"bytes"
	"fmt"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/lock"
	"github.com/outboxgen/outboxgen/gen/output"
	"github.com/outboxgen/outboxgen/gen/sql"
)

// Violation is a migration that no longer fits the catalogue.
type Violation struct {
	Diagnostic diag.Diagnostic
	Sources    map[string][]byte // the files that the diagnostic points into
}

func (v *Violation) Error() string { return v.Diagnostic.Message }

// checkForgotten returns an error if the lock lists no migration, and a file that has the marker of
// generated files is none of outboxgen's migrations: it may be another version of one, which a
// database has run.
func (p *planner) checkForgotten() error {
	if len(p.Known) > 0 {
		return nil
	}
	for _, f := range p.files {
		if output.HasMarker(f.data, output.Marker) && !p.isKnown(f) {
			return p.unknown(f.path)
		}
	}
	return nil
}

// check returns what is wrong, if anything, with a migration on disk that differs from what would
// be written now.
func (p *planner) check(s *step, f file) error {
	switch {
	case s.known == nil && !s.isIn(f):
		return p.unknown(f.path)
	case !s.isIn(f):
		return p.edited(s, f)
	case s.known == nil || s.known.Statements == s.statements:
		return nil
	case p.Database != lock.Normalise(p.Catalogue).Database:
		return p.renamed(f.path)
	case p.holdsMore(s):
		return nil
	default:
		return p.needed(f.path)
	}
}

// twice returns an error that points at the second of two files that make the same tables.
func (p *planner) twice(s *step, first, second file) error {
	pos := diag.Pos{File: p.Display(second.path)}
	message := "this makes the tables that %s makes"
	if s.isIn(second) {
		message = "this is the migration %s once more"
	}
	d := diag.New(diag.MigrationDuplicate, pos, message, p.Display(first.path)).
		WithHelp("delete the one that no database has run")
	return &Violation{Diagnostic: d, Sources: map[string][]byte{pos.File: second.data}}
}

// shared returns an error that points at the key naming the directory of migrations, in which
// another catalogue makes tables of the same names.
func (p *planner) shared(f file, owner string) error {
	d := diag.New(diag.TableSameName, p.Catalogue.Migrations.Pos, "%s makes these tables for %s",
		p.Display(f.path), owner).
		WithHelp("give one of the two catalogues a prefix or a schema, under database; " +
			"for a database of its own, it needs a directory of migrations of its own")
	return &Violation{Diagnostic: d}
}

func (p *planner) unknown(at string) error {
	d := diag.New(diag.MigrationImmutable, diag.Pos{File: p.Display(at)},
		"this migration is not what would be written, and %s does not know it", lock.Name).
		WithHelp("restore %s from version control; if no database has run the migration, "+
			"delete it and generate again", lock.Name)
	return &Violation{Diagnostic: d}
}

// edited returns an error that points at the first line that was edited, if what was written can
// still be rendered.
func (p *planner) edited(s *step, f file) error {
	pos := diag.Pos{File: p.Display(f.path)}
	if output.Hash(s.text) == s.known.Hash {
		pos.Line = output.Write{Data: s.text, Old: f.data}.Line()
	}
	d := diag.New(diag.MigrationImmutable, pos, "this migration was edited after it was generated").
		WithHelp("restore it from version control, and write what you want to change as a " +
			"migration of its own")
	return &Violation{Diagnostic: d, Sources: map[string][]byte{pos.File: f.data}}
}

// renamed returns an error that points at the key that changed the names of the tables, or at the
// database section if the key was removed.
func (p *planner) renamed(at string) error {
	now := lock.Normalise(p.Catalogue).Database
	pos := p.Catalogue.Database.Pos
	switch c := p.Catalogue.Database; {
	case now.Schema != p.Database.Schema && c.SchemaPos.File != "":
		pos = c.SchemaPos
	case now.Prefix != p.Database.Prefix && c.PrefixPos.File != "":
		pos = c.PrefixPos
	}
	old := p.Catalogue.Database
	old.Schema, old.Prefix = p.Database.Schema, p.Database.Prefix
	copied := ""
	if p.Catalogue.Database.Has(catalogue.FeatureInbox) {
		copied = fmt.Sprintf("write a migration that says %s; ",
			sql.Copy("inbox", old, p.Catalogue.Database))
	}
	d := diag.New(diag.TableSameName, pos, "the tables would be %s, but %s makes %s",
		tables(now), p.Display(at), tables(p.Database)).
		WithHelp("take back the change to database; if no database has run the migrations, delete "+
			"them and generate again; otherwise have new tables beside the old ones: delete the "+
			"comment on the first line of each migration, which makes it yours, and %s; generate; "+
			"%sdeploy, and keep a relay of the old release until the old outbox is empty",
			lock.Name, copied)
	return &Violation{Diagnostic: d}
}

// checkService returns an error if the catalogue names another service than before, and no
// migration gives the tables to it.
func (p *planner) checkService(at string) error {
	if p.Service == "" || p.Service == p.Catalogue.Service {
		return nil
	}
	hand := []byte(sql.Hand(p.Catalogue.Database, p.Catalogue.Service))
	for _, f := range p.files {
		if bytes.Contains(bare(f.data), hand) {
			return nil
		}
	}
	d := diag.New(diag.MigrationNeeded, p.Catalogue.Database.Pos,
		"the service was %q and is %q now, but the tables of %s belong to the former, and refuse "+
			"relays and consumers of the latter",
		p.Service, p.Catalogue.Service, p.Display(at)).
		WithHelp("take back the change to service; or, if the source of every event is meant to "+
			"change, write a migration that says: %s; "+
			"and if no database has run %s, delete that and generate again", hand, p.Display(at))
	return &Violation{Diagnostic: d}
}

func (p *planner) needed(at string) error {
	d := diag.New(diag.MigrationNeeded, diag.Pos{File: p.Display(at)},
		"this migration makes other tables than this outboxgen's of the same version").
		WithHelp("use the version of outboxgen that wrote it; if no database has run the " +
			"migration, delete it and generate again")
	return &Violation{Diagnostic: d}
}

// tables describes the names of a database's tables by an example.
func tables(db lock.Database) string {
	name := db.Prefix + "outbox"
	if db.Schema != "" {
		name = db.Schema + "." + name
	}
	return fmt.Sprintf("%q and so on", name)
}
