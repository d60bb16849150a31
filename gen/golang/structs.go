package golang

import (
	"github.com/dave/jennifer/jen"
	"github.com/outboxgen/outboxgen/gen/catalogue"
)

// isPointer reports whether a field is a pointer in Go.
func isPointer(r catalogue.Ref) bool { return r.Optional && !hasNil(r) }

// fieldType makes the type of a field:
//
//	*string
func fieldType(r catalogue.Ref) *jen.Statement {
	if isPointer(r) {
		return jen.Op("*").Add(bareType(r))
	}
	return bareType(r)
}

// elementType makes the type of a list's elements or a map's values. An optional one is always a
// pointer: nil is null in JSON, which is not the same as an empty list.
//
//	*[]string
func elementType(r catalogue.Ref) *jen.Statement {
	if r.Optional {
		return jen.Op("*").Add(bareType(r))
	}
	return bareType(r)
}

// bareType makes a type without regard to its being optional:
//
//	map[string][]Line
func bareType(r catalogue.Ref) *jen.Statement {
	switch r.Kind {
	case catalogue.KindNamed:
		return jen.Id(r.Named.GoName)
	case catalogue.KindList:
		return jen.Index().Add(elementType(*r.Elem))
	case catalogue.KindMap:
		return jen.Map(jen.String()).Add(elementType(*r.Elem))
	default:
		return scalars[r.Scalar].goType()
	}
}

// structType makes a struct; key is the first field on the way to an event's ordering key, or nil.
//
//	type OrderPlacedV1 struct {
//		OrderID uuid.UUID `json:"order_id"` // ordering key
//		// What the customer said.
//		Note *string `json:"note,omitempty"`
//	}
func structType(goName string, fields []*catalogue.Field, key *catalogue.Field) *jen.Statement {
	var members []jen.Code
	for _, f := range fields {
		if f.Doc != "" || f.Deprecated != "" {
			members = append(members, deprecatedComment(f.Deprecated, sentence(f.Doc)))
		}
		members = append(members, structField(f, f == key))
	}
	return jen.Type().Id(goName).Struct(members...)
}

// structField makes:
//
//	Email *string `json:"email,omitempty"` // personal data
func structField(f *catalogue.Field, isKey bool) *jen.Statement {
	tag := f.JSONName
	if f.Type.Optional {
		tag += ",omitempty"
	}
	s := jen.Id(f.GoName).Add(fieldType(f.Type)).Tag(map[string]string{"json": tag})
	switch {
	case isKey && f.Type.Kind == catalogue.KindNamed && f.Type.Named.Enum == nil:
		s.Comment("has the ordering key")
	case isKey && f.PII:
		s.Comment("ordering key, personal data")
	case isKey:
		s.Comment("ordering key")
	case f.PII:
		s.Comment("personal data")
	}
	return s
}
