package catalogue

import (
	"slices"
	"strings"
)

// Scalar is a built-in type, by its name in the catalogue.
type Scalar string

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

// scalars has a row for each scalar type, in the order of the documentation. It holds all that the
// language knows of them; the table of the same name in gen/golang says what they are in Go.
var scalars = []scalarRow{
	{scalar: Bool, others: "boolean"},
	{scalar: String, others: "text str varchar", isKey: true, hasLength: true, hasPattern: true},
	{scalar: Int32, others: "int16", isKey: true, limit: integerLimit(32)},
	{scalar: Int64, others: "int integer long bigint uint64 uint32", isKey: true,
		limit: integerLimit(64)},
	{scalar: Float64, others: "float double", limit: floatLimit},
	{scalar: Decimal, others: "number numeric money"},
	{scalar: UUID, others: "guid", isKey: true},
	{scalar: Timestamp, others: "datetime time timestamptz"},
	{scalar: Date, isKey: true},
	{scalar: Duration, others: "interval"},
	{scalar: Bytes, others: "blob bytea", hasLength: true},
	{scalar: JSON, others: "object any jsonb"},
}

type scalarRow struct {
	scalar Scalar
	others string // what people call it elsewhere, in lower case

	isKey      bool // an event's key can be of it: each value has one text
	hasLength  bool // min_length and max_length fit it
	hasPattern bool // pattern fits it

	// limit reads the number of min or max as a Go literal, or says how to mend it. It is nil if
	// the two do not fit the type.
	limit func(text string) (literal, help string)
}

// Scalars are all scalar types, in the order of the documentation.
var Scalars = func() []Scalar {
	var all []Scalar
	for _, row := range scalars {
		all = append(all, row.scalar)
	}
	return all
}()

// row returns what the language knows of s: nothing if there is no such type.
func (s Scalar) row() scalarRow {
	i := slices.Index(Scalars, s)
	if i < 0 {
		return scalarRow{}
	}
	return scalars[i]
}

// IsKey reports whether an event's key can be of type s.
func (s Scalar) IsKey() bool { return s.row().isKey }

// Takes reports whether a constraint, by its name in the catalogue, fits fields of type s.
func (s Scalar) Takes(constraint string) bool {
	switch row := s.row(); constraint {
	case "min_length", "max_length":
		return row.hasLength
	case "pattern":
		return row.hasPattern
	case "min", "max":
		return row.limit != nil
	default:
		return false
	}
}

func isScalarName(name string) bool { return slices.Contains(Scalars, Scalar(name)) }

// scalarCalled returns the scalar that a name means elsewhere, or "".
func scalarCalled(name string) Scalar {
	for _, row := range scalars {
		if slices.Contains(strings.Fields(row.others), strings.ToLower(name)) {
			return row.scalar
		}
	}
	return ""
}

// scalarsThat returns the names of the scalars that a condition holds for.
func scalarsThat(condition func(Scalar) bool) []string {
	var names []string
	for _, s := range Scalars {
		if condition(s) {
			names = append(names, string(s))
		}
	}
	return names
}
