// Package catalogue holds the resolved model of an event catalogue, and the rules that check it.
//
// Every name that generated code uses is decided here, so that a collision is a diagnostic with two
// positions instead of an error of the Go compiler. Emitters write down what the model says, and
// decide nothing about the catalogue.
package catalogue

import (
	"strconv"
	"time"

	"github.com/outboxgen/outboxgen/gen/diag"
)

// Catalogue is what a catalogue's file says, resolved and checked. Slices are in the order of the
// file.
type Catalogue struct {
	File       string // as diagnostics call it
	Service    string // the CloudEvents source
	Go         Go
	Database   Database
	Migrations Migrations
	Relay      Relay
	Types      []*Type
	Events     []*Event
	Consumers  []*Consumer
}

// Go says where generated code goes.
type Go struct {
	Package string
	Dir     string   // relative to the catalogue, with slashes
	Pos     diag.Pos // of dir
}

// Database says which database the outbox lives in, and what its tables are called.
type Database struct {
	Engine string // postgresql
	Schema string // "" for the first schema of the connection's search path
	Prefix string // before every table's name
	// Features are the tables that the catalogue uses, and those that were made before: Keep.
	Features []Feature

	Pos, SchemaPos, PrefixPos diag.Pos // the zero Pos for a key that the catalogue lacks
}

// Migrations says where migrations go. Dir is "" if the catalogue wants none.
type Migrations struct {
	Dir    string
	Format string // goose or plain
	Pos    diag.Pos
}

// Relay holds what the relay and the enqueue functions must agree on.
type Relay struct {
	Shards    int           // default 64
	Retention time.Duration // how long published events stay readable; default 0, none
}

// Type is a named type: an enum, or a struct if Enum is nil.
type Type struct {
	Name   string // as in the catalogue
	GoName string // the same
	Doc    string
	Fields []*Field
	Enum   *Enum
	// Personal says that a value may hold personal data, in its fields or in what they contain.
	Personal bool
	Pos      diag.Pos
}

// Enum is a type with a list of values.
type Enum struct {
	Values []EnumValue
	Open   bool // readers keep a value that they do not know, instead of refusing it
}

// EnumValue is one value of an enum.
type EnumValue struct {
	Value  string
	GoName string // of its constant: the type's name, then the value's
	Pos    diag.Pos
}

// Field is a field of a struct or of an event's payload.
type Field struct {
	Name        string // as in the catalogue
	JSONName    string
	GoName      string
	Doc         string
	Type        Ref
	PII         bool
	Deprecated  string // what to use instead, or ""
	Constraints Constraints
	Pos         diag.Pos
}

// Constraints limit a field's value. A nil pointer and an empty pattern are no limit. All fit the
// type of their field.
type Constraints struct {
	MinLength, MaxLength *int    // in characters, or in bytes if the type is bytes
	Pattern              string  // in the syntax of RE2, not anchored
	Min, Max             *string // numbers as Go literals
	MinItems, MaxItems   *int    // of a list or map
}

// Any reports whether there is a constraint at all.
func (c Constraints) Any() bool { return c != Constraints{} }

// Kind is the shape of a Ref.
type Kind int

// The kinds of type reference.
const (
	KindScalar Kind = iota // Ref.Scalar
	KindNamed              // Ref.Named
	KindList               // of Ref.Elem
	KindMap                // from string to Ref.Elem
)

// Ref is the type of a field, of a list's elements or of a map's values.
type Ref struct {
	Kind     Kind
	Scalar   Scalar
	Named    *Type
	Elem     *Ref
	Optional bool // T?
}

// String writes a reference as the catalogue does: T, T?, [T] or {string: T}.
func (r Ref) String() string {
	s := ""
	switch r.Kind {
	case KindScalar:
		s = string(r.Scalar)
	case KindNamed:
		s = r.Named.Name
	case KindList:
		s = "[" + r.Elem.String() + "]"
	case KindMap:
		s = "{string: " + r.Elem.String() + "}"
	}
	if r.Optional {
		s += "?"
	}
	return s
}

// Event is one version of an event.
type Event struct {
	Name       string // order.placed
	Version    int
	Doc        string
	Topic      string
	Key        []*Field // the path from the payload to the ordering key; empty without a key
	Fields     []*Field
	Personal   bool   // the payload may hold personal data, in its fields or in what they contain
	Deprecated string // what to use instead, or ""
	GoName     string // OrderPlacedV1
	FileName   string // order_placed_v1.gen.go
	Pos        diag.Pos
}

// TypeName is the event's name on the wire: order.placed@1.
func (e *Event) TypeName() string { return e.Name + "@" + strconv.Itoa(e.Version) }

// Consumer is a handler of events with effects of its own.
type Consumer struct {
	Name     string
	Doc      string
	Handles  []*Event
	Emits    []*Event
	GoName   string // Inventory
	FileName string // inventory_consumer.gen.go
	Pos      diag.Pos
}
