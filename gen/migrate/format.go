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

// render writes the migration that makes the tables, and returns the hash of its statements.
func render(c *catalogue.Catalogue) (text []byte, statements string, err error) {
	schema, err := sql.Schema(c.Database, sql.Statement{})
	if err != nil {
		return nil, "", err
	}
	switch c.Migrations.Format {
	case "goose":
		text, err = goose(c.Database)
	case "plain":
		text = append([]byte(header), schema...)
	default:
		err = fmt.Errorf("migrations: no format %q", c.Migrations.Format)
	}
	return text, output.Hash(bare(schema)), err
}

// goose puts both directions into one file, and marks the statements that hold semicolons.
func goose(db catalogue.Database) ([]byte, error) {
	up, err := sql.Schema(db, sql.Statement{Begin: "-- +goose StatementBegin", End: "-- +goose StatementEnd"})
	if err != nil {
		return nil, err
	}
	down, err := sql.Drop(db)
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{[]byte(header), []byte("-- +goose Up\n"), up, []byte("\n-- +goose Down\n"), down}, nil), nil
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
