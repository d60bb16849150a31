// Package catalogue holds the resolved model of an event catalogue, and the rules that check it.
//
// Every name that generated code uses is decided here, so that a collision is a diagnostic with two positions and not an
// error of the Go compiler. Emitters decide nothing about the catalogue.
package catalogue

import (
	"strconv"
	"time"

	"github.com/outboxgen/outboxgen/gen/diag"
)

// Catalogue is one service's events, and all that is said of them. Slices are in the order of the file.
type Catalogue struct {
	File       string // as named in diagnostics
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
	Schema string // "" for the connection's own
	Prefix string // before every table's name
	// Features are the tables that the catalogue uses, and those that were made before: Keep.
	Features []Feature

	Pos, SchemaPos, PrefixPos diag.Pos // of all of it; of the two, where they are said
}

// Migrations says where migrations go. Dir is "" where the catalogue has none.
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

// Type is a named type: a struct where Enum is nil.
type Type struct {
	Name   string // as in the catalogue, which is also its Go name
	GoName string
	Doc    string
	Fields []*Field
	Enum   *Enum
	Pos    diag.Pos
}

// Enum is a type with a list of values.
type Enum struct {
	Values []EnumValue
	Open   bool // a reader keeps a value that it does not know
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

// Constraints limit a field's value. A nil pointer is no limit. They have been checked to fit the field's type.
type Constraints struct {
	MinLength, MaxLength *int    // string, in characters; bytes, in bytes
	Pattern              string  // string; RE2, unanchored
	Min, Max             *string // int32, int64, float64: the number as a Go literal
	MinItems, MaxItems   *int    // lists and maps
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

// Scalar is a built-in type, by its name in the catalogue.
type Scalar string

// Scalars are all of them, in the order of the documentation.
var Scalars = []Scalar{Bool, String, Int32, Int64, Float64, Decimal, UUID, Timestamp, Date, Duration, Bytes, JSON}

// The scalar types.
const (
	Bool      Scalar = "bool"
	String    Scalar = "string"
	Int32     Scalar = "int32"
	Int64     Scalar = "int64"
	Float64   Scalar = "float64"
	Decimal   Scalar = "decimal"
	UUID      Scalar = "uuid"
	Timestamp Scalar = "timestamp"
	Date      Scalar = "date"
	Duration  Scalar = "duration"
	Bytes     Scalar = "bytes"
	JSON      Scalar = "json"
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
