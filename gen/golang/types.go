package golang

import (
	"github.com/dave/jennifer/jen"
	"github.com/outboxgen/outboxgen/gen/catalogue"
)

// typesSource is types.gen.go: the structs and enums that payloads are made of.
func (g *generator) typesSource() source {
	s := source{name: "types.gen.go"}
	for _, t := range g.catalogue.Types {
		if t.Enum != nil {
			s.declarations = append(s.declarations, enum(t)...)
			continue
		}
		validation, err := g.validation(t.GoName, "v", t.Fields)
		if err != nil {
			s.err = err
		}
		s.declarations = append(s.declarations, namedStruct(t))
		s.declarations = append(s.declarations, validation...)
	}
	return s
}

// namedStruct makes:
//
//	// Money is part of payloads.
//	//
//	// An amount in the currency's smallest unit.
//	type Money struct {
//		…
//	}
func namedStruct(t *catalogue.Type) jen.Code {
	return comment(t.GoName+" is part of payloads.", sentence(t.Doc)).Line().
		Add(structType(t.GoName, t.Fields, nil))
}

// enum makes the type of an enum, its constants and its methods.
func enum(t *catalogue.Type) []jen.Code {
	declarations := []jen.Code{enumType(t)}
	if len(t.Enum.Values) > 0 {
		declarations = append(declarations, enumConstants(t))
	}
	declarations = append(declarations, enumValid(t))
	if t.Enum.Open {
		declarations = append(declarations, enumOpen(t))
	}
	return declarations
}

// enumType makes:
//
//	// Channel is one of the constants below, or a value that was added since: …
//	type Channel string
func enumType(t *catalogue.Type) jen.Code {
	values := "is one of the constants below. Readers refuse any other value."
	if t.Enum.Open {
		values = "is one of the constants below, or a value that was added since: readers keep " +
			"it, and may pass it on."
	}
	return comment(t.GoName+" "+values, sentence(t.Doc)).Line().
		Type().Id(t.GoName).String()
}

// enumConstants makes:
//
//	// The values of Channel.
//	const (
//		ChannelWeb Channel = "web"
//		ChannelApp Channel = "app"
//	)
func enumConstants(t *catalogue.Type) jen.Code {
	var constants []jen.Code
	for _, v := range t.Enum.Values {
		constants = append(constants, jen.Id(v.GoName).Id(t.GoName).Op("=").Lit(v.Value))
	}
	return comment("The values of " + t.GoName + ".").Line().Const().Defs(constants...)
}

// enumValid makes:
//
//	// Valid reports whether v is one of the constants.
//	func (v Channel) Valid() bool {
//		switch v {
//		case ChannelWeb, ChannelApp:
//			return true
//		default:
//			return false
//		}
//	}
func enumValid(t *catalogue.Type) jen.Code {
	var constants []jen.Code
	for _, v := range t.Enum.Values {
		constants = append(constants, jen.Id(v.GoName))
	}
	cases := []jen.Code{jen.Default().Block(jen.Return(jen.False()))}
	if len(constants) > 0 {
		cases = append([]jen.Code{jen.Case(constants...).Block(jen.Return(jen.True()))}, cases...)
	}
	return comment("Valid reports whether v is one of the constants.").Line().
		Func().Params(jen.Id("v").Id(t.GoName)).Id("Valid").Params().Bool().
		Block(jen.Switch(jen.Id("v")).Block(cases...))
}

// enumOpen makes:
//
//	// OpenEnum marks an enum that may hold values which its constants do not name.
//	func (Channel) OpenEnum() {}
func enumOpen(t *catalogue.Type) jen.Code {
	return comment(
		"OpenEnum marks an enum that may hold values which its constants do not name.",
	).Line().
		Func().Params(jen.Id(t.GoName)).Id("OpenEnum").Params().Block()
}
