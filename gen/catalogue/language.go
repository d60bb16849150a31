package catalogue

import (
	"time"

	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/dialect"
	"github.com/outboxgen/outboxgen/gen/source"
)

// LanguageVersion is the version of the catalogue language that Parse reads.
const LanguageVersion = 1

// Limits of the relay's settings.
const (
	DefaultShards = 64
	MaxShards     = 1024
	MaxRetention  = 3650 * 24 * time.Hour
)

// The keys of the catalogue, and of those mappings that it has one of.

var catalogueTable = table[draft]{what: "a catalogue", keys: []key[draft]{
	{"outboxgen", kindInteger, true, "the version of the language: 1",
		func(*decoder, source.Pair, *draft) {}},
	{"service", kindText, true, "the CloudEvents source of every event, such as shop/orders",
		func(d *decoder, p source.Pair, c *draft) {
			d.service(p.Value, &c.Service)
		}},
	{"go", kindMapping, true, "where generated code goes",
		func(d *decoder, p source.Pair, c *draft) {
			goTable.decode(d, p.Value, p.Key.Pos, &c.Go)
		}},
	{"database", kindMapping, true, "the database that the outbox lives in",
		func(d *decoder, p source.Pair, c *draft) {
			c.Database.Pos = p.Key.Pos
			databaseTable.decode(d, p.Value, p.Key.Pos, &c.Database)
			d.databaseNames(c.Database)
		}},
	{"migrations", kindMapping, false, "where migrations go, and for which tool",
		func(d *decoder, p source.Pair, c *draft) {
			c.Migrations.Pos = p.Key.Pos
			migrationsTable.decode(d, p.Value, p.Key.Pos, &c.Migrations)
		}},
	{"relay", kindMapping, false, "what the relay and the enqueue functions agree on",
		func(d *decoder, p source.Pair, c *draft) {
			relayTable.decode(d, p.Value, p.Key.Pos, &c.Relay)
		}},
	{"defaults", kindMapping, false, "what holds for every event that does not say otherwise",
		func(d *decoder, p source.Pair, c *draft) {
			defaultsTable.decode(d, p.Value, p.Key.Pos, c)
		}},
	{"types", kindMapping, false, "named types", (*decoder).types},
	{"events", kindMapping, false, "events by name and version", (*decoder).events},
	{"consumers", kindMapping, false, "consumers by name", (*decoder).consumers},
	{name: "jobs"}, {name: "endpoints"}, {name: "imports"}, {name: "include"}, {name: "breaking"},
}}

var goTable = table[Go]{what: "go", keys: []key[Go]{
	{"package", kindText, true, "the name of the generated package",
		func(d *decoder, p source.Pair, g *Go) {
			d.goPackage(p.Value, &g.Package)
		}},
	{"dir", kindText, true, "the directory of the package, relative to the catalogue",
		func(d *decoder, p source.Pair, g *Go) {
			g.Pos = p.Value.Pos
			d.goDir(p, &g.Dir)
		}},
	{name: "types"},
}}

var databaseTable = table[Database]{what: "database", keys: []key[Database]{
	{"engine", kindText, true, "the database's kind: postgresql",
		func(d *decoder, p source.Pair, b *Database) {
			d.choose(p, engines, &b.Engine)
		}},
	{"schema", kindText, false, "the schema of the tables; without it, the connection's own",
		func(_ *decoder, p source.Pair, b *Database) {
			b.Schema, b.SchemaPos = p.Value.Text, p.Value.Pos
		}},
	{"prefix", kindOptionalText, false, "what stands before every table's name",
		func(_ *decoder, p source.Pair, b *Database) {
			b.Prefix, b.PrefixPos = p.Value.Text, p.Value.Pos
		}},
}}

// engines are those that have a dialect, and those that are planned.
var engines = append(offered(dialect.Engines()), choice{"mysql", true}, choice{"sqlite", true})

var migrationsTable = table[Migrations]{what: "migrations", keys: []key[Migrations]{
	{"dir", kindText, true, "the directory of the migrations, relative to the catalogue",
		func(d *decoder, p source.Pair, m *Migrations) {
			d.dir(p, &m.Dir)
		}},
	{"format", kindText, true, "the tool that applies them: goose, or plain for none",
		func(d *decoder, p source.Pair, m *Migrations) {
			d.choose(p, migrationFormats, &m.Format)
		}},
}}

var migrationFormats = []choice{
	{value: "goose"}, {value: "plain"}, {"golang-migrate", true}, {"tern", true}, {"dbmate", true},
	{"atlas", true},
}

// Engines returns the database engines that a catalogue can choose, MigrationFormats the formats of
// migrations.
func Engines() []string          { return choiceNames(engines) }
func MigrationFormats() []string { return choiceNames(migrationFormats) }

var relayTable = table[Relay]{what: "relay", keys: []key[Relay]{
	{"shards", kindInteger, false,
		"how many parts the outbox is divided into, from 1 to 1024; default 64",
		func(d *decoder, p source.Pair, r *Relay) {
			d.integer(p, 1, MaxShards, &r.Shards)
		}},
	{"retention", kindSpan, false, "how long published events stay readable; default 0, none",
		func(d *decoder, p source.Pair, r *Relay) {
			d.span(p, MaxRetention, &r.Retention)
		}},
}}

var defaultsTable = table[draft]{what: "defaults", keys: []key[draft]{
	{"topic", kindText, false, "the topic of every event that names none",
		func(d *decoder, p source.Pair, c *draft) {
			d.topic(p.Value)
			c.defaultTopic = p.Value.Text
		}},
	{name: "retry"},
}}

// catalogue reads the whole file. It returns nil if there is nothing in it to check.
func (d *decoder) catalogue(file string, f *source.File) *draft {
	for _, n := range f.Directives {
		d.add(diag.New(diag.NotSupportedYet, n.Pos, "the comment %q is not supported yet", n.Text))
	}
	root := f.Root
	switch {
	case root.Kind == source.Invalid:
		return nil
	case root.IsEmpty():
		d.add(diag.New(diag.ValueEmpty, diag.Pos{File: file}, "the catalogue is empty").
			WithHelp("begin with: outboxgen: %d", LanguageVersion))
		return nil
	case root.Kind != source.Mapping:
		d.add(diag.New(diag.ValueKind, root.Pos, "a catalogue is a mapping, not %s", root.Kind))
		return nil
	}
	if !d.readsVersion(root) {
		return nil
	}
	c := &draft{pos: root.Pos}
	c.File = file
	c.Relay.Shards = DefaultShards
	catalogueTable.decode(d, root, root.Pos, c)
	return c
}

// readsVersion reports whether the catalogue is in the version of the language that Parse reads. If
// it is in another one, any further diagnostic would mislead.
func (d *decoder) readsVersion(root *source.Node) bool {
	p := root.Get("outboxgen")
	if p == nil || p.Value.Kind != source.Scalar || !isInteger(p.Value) || p.Value.Text == "1" {
		return true
	}
	d.add(diag.New(diag.LanguageVersion, p.Value.Pos,
		"this outboxgen reads version %d of the language, not %s", LanguageVersion, p.Value.Text).
		WithHelp("write outboxgen: %d, or install a newer outboxgen", LanguageVersion))
	return false
}
