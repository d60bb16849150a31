package sql

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/templates"
)

// Migration is one step in the history of a feature's tables. Once released it never changes; a
// later change is another version. It changes only tables and functions of its own feature, so that
// features can be added in any order.
type Migration struct {
	Feature catalogue.Feature
	Version int    // counted from 1 in each feature
	what    string // the rest of its template's name
}

// ID returns the name of a migration, such as outbox_2.
func (m Migration) ID() string { return string(m.Feature) + "_" + strconv.Itoa(m.Version) }

var migrationFile = regexp.MustCompile(`^([0-9]{4})_([a-z_]+)\.up\.sql\.tmpl$`)

// Migrations returns the migrations of a database's features, in the order in which they are
// applied.
func Migrations(db catalogue.Database) ([]Migration, error) {
	var all []Migration
	for _, feature := range db.Features {
		dir := path.Join(db.Engine, "migrations", string(feature))
		entries, err := fs.ReadDir(templates.FS, dir)
		if err != nil {
			return nil, fmt.Errorf("sql: %w", err)
		}
		for version := 1; 2*version <= len(entries); version++ { // down, up, down, up
			name := entries[2*version-1].Name()
			m := migrationFile.FindStringSubmatch(name)
			if m == nil || m[1] != fmt.Sprintf("%04d", version) {
				return nil, fmt.Errorf("sql: %s: not the migration to version %d", name, version)
			}
			all = append(all, Migration{Feature: feature, Version: version, what: m[2]})
		}
	}
	return all, nil
}

// Up returns the statements of a migration. Those that contain semicolons are wrapped in the lines
// of s.
func (m Migration) Up(db catalogue.Database, service string, s Statement) ([]byte, error) {
	return render(db, m.template("up"), functions(db, service, s))
}

// Down returns the statements that undo a migration. They keep the database's schema, which others
// may use.
func (m Migration) Down(db catalogue.Database, s Statement) ([]byte, error) {
	return render(db, m.template("down"), functions(db, "", s))
}

func (m Migration) template(direction string) string {
	return fmt.Sprintf("migrations/%s/%04d_%s.%s.sql.tmpl", m.Feature, m.Version, m.what, direction)
}

// schema returns the tables for sqlc: the statements of all migrations in order.
func schema(db catalogue.Database, service string) ([]byte, error) {
	migrations, err := Migrations(db)
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for _, m := range migrations {
		text, err := m.Up(db, service, Statement{})
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return bytes.Join(all, []byte("\n")), nil
}

// Version is the newest version of a feature's tables.
type Version struct {
	Feature catalogue.Feature
	Version int
}

// Versions returns what the code of a catalogue needs of a database: the newest version of each of
// its features.
func Versions(db catalogue.Database) ([]Version, error) {
	migrations, err := Migrations(db)
	var versions []Version
	for i, m := range migrations {
		if i+1 == len(migrations) || migrations[i+1].Feature != m.Feature {
			versions = append(versions, Version{Feature: m.Feature, Version: m.Version})
		}
	}
	return versions, err
}
