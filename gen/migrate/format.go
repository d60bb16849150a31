package migrate

import (
	"bytes"
	"fmt"
	"regexp"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/lock"
	"github.com/outboxgen/outboxgen/gen/output"
	"github.com/outboxgen/outboxgen/gen/sql"
)

const header = "-- " + output.Marker + "\n\n"

// step is a migration that a catalogue needs, as it would be written now.
type step struct {
	sql.Migration
	known      *lock.Migration // as it was written; nil if it was not
	text       []byte          // the file
	statements string          // the hash of the SQL that it runs, without the service's name
	down       []byte          // the statements that undo it, bare
}

// newStep renders a migration for the tool of a catalogue.
func newStep(c *catalogue.Catalogue, m sql.Migration) (*step, error) {
	format, ok := formats[c.Migrations.Format]
	if !ok {
		return nil, fmt.Errorf("migrations: no format %q", c.Migrations.Format)
	}
	s := &step{Migration: m}
	up, err := m.Up(c.Database, "", sql.Statement{})
	if err != nil {
		return nil, err
	}
	s.statements = output.Hash(bare(up))
	down, err := m.Down(c.Database, sql.Statement{})
	if err != nil {
		return nil, err
	}
	s.down = trimmed(down)
	text, err := format(m, c.Database, c.Service)
	s.text = append([]byte(header), text...)
	return s, err
}

// formats holds, by format, what writes a migration without its header. A new format is added here
// and in gen/catalogue/language.go.
var formats = map[string]func(sql.Migration, catalogue.Database, string) ([]byte, error){
	"goose": goose, "plain": plain,
}

// plain writes the statements that apply a migration, and nothing else.
func plain(m sql.Migration, db catalogue.Database, service string) ([]byte, error) {
	return m.Up(db, service, sql.Statement{})
}

// goose writes both directions into one file, and marks the statements that contain semicolons.
func goose(m sql.Migration, db catalogue.Database, service string) ([]byte, error) {
	marks := sql.Statement{Begin: "-- +goose StatementBegin", End: "-- +goose StatementEnd"}
	up, err := m.Up(db, service, marks)
	if err != nil {
		return nil, err
	}
	down, err := m.Down(db, marks)
	if err != nil {
		return nil, err
	}
	all := [][]byte{[]byte("-- +goose Up\n"), up, []byte("\n-- +goose Down\n"), down}
	return bytes.Join(all, nil), nil
}

var (
	quotedOrBlank = regexp.MustCompile(`'(?:[^']|'')*'|"(?:[^"]|"")*"|(?:--[^\n]*|\s)+`)
	space         = []byte(" ")
)

// bare returns SQL without comments and with single spaces, so that a better comment in a template
// does not count as a change of the tables.
func bare(text []byte) []byte {
	return quotedOrBlank.ReplaceAllFunc(text, func(match []byte) []byte {
		if match[0] == '\'' || match[0] == '"' {
			return match
		}
		return space
	})
}
