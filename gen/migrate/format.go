package migrate

import (
	"bytes"
	"fmt"
	"regexp"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/output"
	"github.com/outboxgen/outboxgen/gen/sql"
)

const header = "-- " + output.Marker + "\n\n"

// render writes the migration that makes the tables, and returns the hash of its statements,
// whatever service the tables belong to.
func render(c *catalogue.Catalogue) (text []byte, statements string, err error) {
	schema, err := sql.Schema(c.Database, "", sql.Statement{})
	if err != nil {
		return nil, "", err
	}
	format, ok := formats[c.Migrations.Format]
	if !ok {
		return nil, "", fmt.Errorf("migrations: no format %q", c.Migrations.Format)
	}
	text, err = format(c.Database, c.Service)
	return append([]byte(header), text...), output.Hash(bare(schema)), err
}

// formats write a migration, but for its header, as each tool reads it. This is the place to add one; gen/catalogue/language.go
// offers it.
var formats = map[string]func(db catalogue.Database, service string) ([]byte, error){
	"goose": goose, "plain": plain,
}

// plain holds the statements that make the tables, and nothing else.
func plain(db catalogue.Database, service string) ([]byte, error) {
	return sql.Schema(db, service, sql.Statement{})
}

// goose puts both directions into one file, and marks the statements that hold semicolons.
func goose(db catalogue.Database, service string) ([]byte, error) {
	up, err := sql.Schema(db, service,
		sql.Statement{Begin: "-- +goose StatementBegin", End: "-- +goose StatementEnd"})
	if err != nil {
		return nil, err
	}
	down, err := sql.Drop(db)
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{[]byte("-- +goose Up\n"), up, []byte("\n-- +goose Down\n"), down}, nil), nil
}

var (
	quotedOrBlank = regexp.MustCompile(`'(?:[^']|'')*'|"(?:[^"]|"")*"|(?:--[^\n]*|\s)+`)
	space         = []byte(" ")
)

// bare returns SQL without comments and with single spaces, so that a better comment in a template is no change of the tables.
func bare(text []byte) []byte {
	return quotedOrBlank.ReplaceAllFunc(text, func(match []byte) []byte {
		if match[0] == '\'' || match[0] == '"' {
			return match
		}
		return space
	})
}
