// Package dialect holds what the compiler has to know of each database engine: names and their
// limits, quoting, and the Go types of the driver. Everything else is in the engine's folder of
// templates.
package dialect

import "slices"

// Dialect is what differs from one database engine to another.
type Dialect struct {
	Engine string // as in the catalogue, and the folder of its templates: postgresql
	Name   string // for people: PostgreSQL

	// MaxIdentifier is the longest name of a table or an index, in bytes. MaxPrefix is the longest
	// that the catalogue may put before the names that the templates use.
	MaxIdentifier, MaxPrefix int

	// Reserved are the words, in lower case, that are a schema's name in quotes only.
	Reserved map[string]bool
	// IsSystem reports whether the engine keeps a schema's name for itself.
	IsSystem func(name string) bool

	Quote   func(name string) string // makes an identifier of any text
	Literal func(text string) string // makes a string constant of any text

	// LockKey makes the constant that stands for a lock of the application's own. It is nil for an
	// engine that has no such locks.
	LockKey func(name string) string

	// Tx is the transaction that generated code takes. Batch gathers statements for one round trip;
	// it is the zero GoType for an engine whose driver has none.
	Tx, Batch GoType
}

// GoType is a type of the engine's driver.
type GoType struct {
	Path    string // of its package: github.com/jackc/pgx/v5
	Package string // the package's name: pgx
	Name    string // Tx
	Pointer bool   // generated code takes it as a pointer
}

// all are the engines that can be chosen.
var all = []*Dialect{&postgresql}

// Engines returns the names of the engines that have a dialect, as the catalogue has them.
func Engines() []string {
	var names []string
	for _, d := range all {
		names = append(names, d.Engine)
	}
	return names
}

// Of returns the dialect of an engine, or nil if there is none.
func Of(engine string) *Dialect {
	i := slices.IndexFunc(all, func(d *Dialect) bool { return d.Engine == engine })
	if i < 0 {
		return nil
	}
	return all[i]
}
