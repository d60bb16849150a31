package golang

import "github.com/dave/jennifer/jen"

// privacySource is privacy.gen.go: methods that keep personal data out of logs, for all structs
// that hold some, in their own fields or in what these contain.
func (g *generator) privacySource() source {
	s := source{name: "privacy.gen.go"}
	for _, t := range g.catalogue.Types {
		if t.Personal {
			s.declarations = append(s.declarations, logValueMethod(t.GoName, t.Name),
				formatMethod(t.GoName, t.Name))
		}
	}
	for _, e := range g.catalogue.Events {
		if e.Personal {
			s.declarations = append(s.declarations, logValueMethod(e.GoName, e.TypeName()),
				formatMethod(e.GoName, e.TypeName()))
		}
	}
	return s
}

// logValueMethod makes:
//
//	// LogValue keeps personal data out of structured logs whose attribute the value is.
//	func (OrderPlacedV1) LogValue() slog.Value {
//		return slog.StringValue("order.placed@1 [personal data]")
//	}
func logValueMethod(goName, name string) jen.Code {
	return comment("LogValue keeps personal data out of structured logs whose attribute the value "+
		"is.").Line().
		Func().Params(jen.Id(goName)).Id("LogValue").Params().Qual("log/slog", "Value").
		Add(shortBody(jen.Return(jen.Qual("log/slog", "StringValue").Call(withheld(name)))))
}

// formatMethod makes the method that package fmt prefers to all others, whatever the verb:
//
//	// Format keeps personal data out of what package fmt makes of a value, by whatever verb.
//	func (OrderPlacedV1) Format(f fmt.State, _ rune) {
//		_, _ = io.WriteString(f, "order.placed@1 [personal data]")
//	}
func formatMethod(goName, name string) jen.Code {
	write := jen.List(jen.Id("_"), jen.Id("_")).Op("=").Qual("io", "WriteString").Call(jen.Id("f"),
		withheld(name))
	return comment("Format keeps personal data out of what package fmt makes of a value, by "+
		"whatever verb.").Line().
		Func().Params(jen.Id(goName)).Id("Format").
		Params(jen.Id("f").Qual("fmt", "State"), jen.Id("_").Rune()).
		Add(shortBody(write))
}

// withheld makes what is shown in place of a value:
//
//	"order.placed@1 [personal data]"
func withheld(name string) jen.Code { return jen.Lit(name + " [personal data]") }
