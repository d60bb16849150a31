package golang

import (
	"bytes"
	"fmt"
	"text/template"

	"github.com/outboxgen/outboxgen/templates"
)

// storeFile returns store.gen.go: the outbox and the inbox on sqlc's queries. Hardly anything in it
// depends on the catalogue, so that it is a template of the database engine's.
func (g *generator) storeFile() (File, error) {
	const name = "store.go.tmpl"
	f := File{Path: g.path("store.gen.go")}
	t, err := template.New(name).Option("missingkey=error").
		ParseFS(templates.FS, g.catalogue.Database.Engine+"/"+name)
	if err != nil {
		return File{}, fmt.Errorf("golang: %s: %w", f.Path, err)
	}
	holes := struct {
		Package  string // of the catalogue's Go
		Outboxdb string // the path of sqlc's package
		Settle   string // the query that settles what was published
	}{g.catalogue.Go.Package, g.databasePath(), "DeleteEvents"}
	if g.catalogue.Relay.Retention > 0 {
		holes.Settle = "MoveEventsToSent"
	}
	var out bytes.Buffer
	if err := t.Execute(&out, holes); err != nil {
		return File{}, fmt.Errorf("golang: %s: %w", f.Path, err)
	}
	if f.Content, err = splitImports(out.Bytes()); err != nil {
		return File{}, fmt.Errorf("golang: %s: %w", f.Path, err)
	}
	return f, nil
}
