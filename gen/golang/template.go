package golang

import (
	"bytes"
	"fmt"
	"strings"
	"text/template"
	"time"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/sql"
	"github.com/outboxgen/outboxgen/templates"
)

// engineFiles returns what is the same for every catalogue of a database engine but for a few
// words. Each file NAME.gen.go is made of the engine's template NAME.go.tmpl.
func (g *generator) engineFiles() ([]File, error) {
	all, err := template.New("").Option("missingkey=error").
		ParseFS(templates.FS, g.catalogue.Database.Engine+"/*.go.tmpl")
	if err != nil {
		return nil, fmt.Errorf("golang: %w", err)
	}
	holes, err := g.holes()
	if err != nil {
		return nil, fmt.Errorf("golang: %w", err)
	}
	names := []string{"outbox", "store"}
	if len(g.catalogue.Consumers) > 0 {
		names = append(names, "inbox")
	}
	if g.catalogue.Database.Has(catalogue.FeatureRetention) {
		names = append(names, "retention")
	}
	var files []File
	for _, name := range names {
		f := File{Path: g.path(name + ".gen.go")}
		var out bytes.Buffer
		err := all.ExecuteTemplate(&out, name+".go.tmpl", holes)
		if err == nil {
			f.Content, err = splitImports(out.Bytes())
		}
		if err != nil {
			return nil, fmt.Errorf("golang: %s: %w", f.Path, err)
		}
		files = append(files, f)
	}
	return files, nil
}

// holes are what the engine's templates say of a catalogue.
type holes struct {
	PackageDoc   string // a comment
	Package      string // the package's name
	Outboxdb     string // the import path of what sqlc makes of the queries
	Service      string
	Shards       int
	RetentionDoc string // a comment
	Retention    string // an expression
	Channel      string // of NOTIFY
	Settle       string // the query that settles what was published
	Migrations   string // their directory
	Features     []sql.Version
	Consumers    bool // whether there are any
}

func (g *generator) holes() (holes, error) {
	c := g.catalogue
	h := holes{
		PackageDoc: commentText("",
			"Package "+c.Go.Package+" holds the events of "+oneLine(c.Service)+".",
			"Its Store makes an event part of a transaction. It serves the relay, which "+
				"publishes\ncommitted events, and the consumers, which apply the events that a "+
				"broker delivers."),
		Package:      c.Go.Package,
		Outboxdb:     g.databasePath(),
		Service:      c.Service,
		Shards:       c.Relay.Shards,
		RetentionDoc: "// Retention is how long published events stay readable.",
		Retention:    duration(c.Relay.Retention),
		Channel:      sql.Channel(c.Database),
		Settle:       "MoveEventsToSent",
		Migrations:   c.Migrations.Dir,
		Consumers:    len(c.Consumers) > 0,
	}
	if c.Relay.Retention == 0 {
		h.RetentionDoc = "// Retention is how long published events stay readable: not at all."
		h.Settle = "DeleteEvents"
	}
	var err error
	h.Features, err = sql.Versions(c.Database)
	return h, err
}

// duration returns a duration as an expression, in the largest unit of which it is a whole number:
//
//	72 * time.Hour
func duration(d time.Duration) string {
	if d == 0 {
		return "time.Duration(0)"
	}
	units := []struct {
		name string
		size time.Duration
	}{
		{"Hour", time.Hour}, {"Minute", time.Minute}, {"Second", time.Second},
		{"Millisecond", time.Millisecond}, {"Microsecond", time.Microsecond},
		{"Nanosecond", time.Nanosecond},
	}
	i := 0
	for d%units[i].size != 0 {
		i++
	}
	return strings.TrimPrefix(fmt.Sprintf("%d * time.%s", d/units[i].size, units[i].name), "1 * ")
}
