package golang

import (
	"github.com/dave/jennifer/jen"
	"github.com/outboxgen/outboxgen/gen/catalogue"
)

// scalars has a row for each scalar type of the catalogue: what it is in Go. Its codec is in
// runtime/payload.
var scalars = map[catalogue.Scalar]scalarRow{
	catalogue.Bool:      {goType: jen.Bool},
	catalogue.String:    {goType: jen.String, keyText: asItIs, length: "Length"},
	catalogue.Int32:     {goType: jen.Int32, keyText: formatInt32},
	catalogue.Int64:     {goType: jen.Int64, keyText: formatInt64},
	catalogue.Float64:   {goType: jen.Float64},
	catalogue.Decimal:   {goType: qualified(payloadPath, "Decimal")},
	catalogue.UUID:      {goType: qualified(uuidPath, "UUID"), keyText: callString},
	catalogue.Timestamp: {goType: qualified("time", "Time")},
	catalogue.Date:      {goType: qualified(payloadPath, "Date"), keyText: callString},
	catalogue.Duration:  {goType: qualified("time", "Duration")},
	catalogue.Bytes:     {goType: byteSlice, hasNil: true, length: "Size"},
	catalogue.JSON:      {goType: qualified("encoding/json", "RawMessage"), hasNil: true},
}

type scalarRow struct {
	goType func() *jen.Statement
	// hasNil says that the type has a nil of its own, and needs no pointer to be absent.
	hasNil bool
	// keyText makes the text of an event's key. It is nil for types that a key cannot be of.
	keyText func(value *jen.Statement) jen.Code
	// length is the function of runtime/payload that checks a length, or "".
	length string
}

// byteSlice makes:
//
//	[]byte
func byteSlice() *jen.Statement { return jen.Index().Byte() }

// qualified returns a function that makes the name of a type in a package:
//
//	uuid.UUID
func qualified(path, name string) func() *jen.Statement {
	return func() *jen.Statement { return jen.Qual(path, name) }
}

// asItIs makes the text of a key that is a text:
//
//	e.OrderID
func asItIs(value *jen.Statement) jen.Code { return value }

// callString makes:
//
//	e.OrderID.String()
func callString(value *jen.Statement) jen.Code { return value.Dot("String").Call() }

// formatInt64 makes:
//
//	strconv.FormatInt(e.OrderID, 10)
func formatInt64(value *jen.Statement) jen.Code {
	return jen.Qual("strconv", "FormatInt").Call(value, jen.Lit(10))
}

// formatInt32 makes:
//
//	strconv.FormatInt(int64(e.OrderID), 10)
func formatInt32(value *jen.Statement) jen.Code { return formatInt64(jen.Int64().Call(value)) }

// keyText makes the text of a key, or nil if its type has none.
func keyText(r catalogue.Ref, value *jen.Statement) jen.Code {
	if text := scalars[r.Scalar].keyText; text != nil {
		return text(value)
	}
	return nil
}

// hasNil reports whether a type has a nil of its own, so that it needs no pointer to be absent.
func hasNil(r catalogue.Ref) bool {
	return r.Kind == catalogue.KindList || r.Kind == catalogue.KindMap || scalars[r.Scalar].hasNil
}
