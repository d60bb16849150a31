package golang

import (
	"fmt"
	"strings"

	"github.com/dave/jennifer/jen"
	"github.com/outboxgen/outboxgen/gen/catalogue"
)

// namePatterns gives each pattern's variable a name that no other has.
func namePatterns(c *catalogue.Catalogue) map[*catalogue.Field]string {
	names, uses := map[*catalogue.Field]string{}, map[string]int{}
	add := func(goName string, fields []*catalogue.Field) {
		for _, f := range fields {
			if f.Constraints.Pattern == "" {
				continue
			}
			name := unexported(goName + f.GoName + "Pattern")
			if uses[name]++; uses[name] > 1 {
				name = fmt.Sprintf("%s%d", name, uses[name])
			}
			names[f] = name
		}
	}
	for _, t := range c.Types {
		add(t.GoName, t.Fields)
	}
	for _, e := range c.Events {
		add(e.GoName, e.Fields)
	}
	return names
}

// unexported makes the first word of a name lower-case: OrderPlacedV1 becomes orderPlacedV1,
// URLChangedV1 becomes urlChangedV1.
func unexported(name string) string {
	n := 0
	for n < len(name) && 'A' <= name[n] && name[n] <= 'Z' {
		n++
	}
	if n > 1 && n < len(name) && 'a' <= name[n] && name[n] <= 'z' {
		n-- // the last capital begins a word
	}
	return strings.ToLower(name[:n]) + name[n:]
}

// validation makes the patterns and the Validate method of a struct, or nothing if it has no
// constraints.
func (g *generator) validation(goName, receiver string, fields []*catalogue.Field) ([]jen.Code,
	error) {
	var declarations, guarded, checks []jen.Code
	for _, f := range fields {
		if name := g.patterns[f]; name != "" {
			declarations = append(declarations, patternVariable(name, f.Constraints.Pattern))
		}
		fieldChecks, err := g.checks(receiver, f)
		if err != nil {
			return nil, err
		}
		if needsGuard(f) {
			guarded = append(guarded, guard(receiver, f, fieldChecks))
			continue
		}
		checks = append(checks, fieldChecks...)
	}
	if len(guarded)+len(checks) > 0 {
		declarations = append(declarations, validateMethod(goName, receiver, guarded, checks))
	}
	return declarations, nil
}

// patternVariable makes:
//
//	var moneyCurrencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)
func patternVariable(name, pattern string) jen.Code {
	return jen.Var().Id(name).Op("=").Qual("regexp", "MustCompile").Call(rawString(pattern))
}

// validateMethod makes:
//
//	// Validate checks what the catalogue asks of the fields. …
//	func (v Money) Validate() error {
//		return payload.Check(
//			payload.Pattern("currency", &v.Currency, moneyCurrencyPattern),
//			payload.AtLeast("amount", &v.Amount, 1),
//		)
//	}
func validateMethod(goName, receiver string, guarded, checks []jen.Code) jen.Code {
	var result jen.Code = jen.Nil()
	switch len(checks) {
	case 0:
	case 1:
		result = checks[0]
	default:
		result = payload("Check").Add(argumentLines(checks...))
	}
	return comment("Validate checks what the catalogue asks of the fields. Enqueueing and " +
		"decoding an event call it.").Line().
		Func().Params(jen.Id(receiver).Id(goName)).Id("Validate").Params().Error().
		Block(append(guarded, jen.Return(result))...)
}

// needsGuard reports whether an absent field would fail its check. The checks know of nil pointers,
// but take a nil slice or map for an empty one.
func needsGuard(f *catalogue.Field) bool {
	return f.Type.Optional && hasNil(f.Type) && (isPositive(f.Constraints.MinItems) ||
		isPositive(f.Constraints.MinLength))
}

func isPositive(n *int) bool { return n != nil && *n > 0 }

// guard makes the checks of a field that may be absent:
//
//	if e.Tags != nil {
//		if err := payload.Items("tags", len(e.Tags), 1, 5); err != nil {
//			return err
//		}
//	}
func guard(receiver string, f *catalogue.Field, checks []jen.Code) jen.Code {
	body := make([]jen.Code, len(checks))
	for i, check := range checks {
		body[i] = try(check, jen.Err())
	}
	return jen.If(selector(receiver, f.GoName).Op("!=").Nil()).Block(body...)
}

// checks makes the calls that check one field:
//
//	payload.Length("email", &e.Email, 0, 254)
func (g *generator) checks(receiver string, f *catalogue.Field) ([]jen.Code, error) {
	var checks []jen.Code
	add := func(function string, arguments ...jen.Code) {
		checks = append(checks, payload(function).Call(append([]jen.Code{jen.Lit(f.JSONName)},
			arguments...)...))
	}
	c := f.Constraints
	if c.MinItems != nil || c.MaxItems != nil {
		add("Items", jen.Len(selector(receiver, f.GoName)), least(c.MinItems), most(c.MaxItems))
	}
	if c.MinLength != nil || c.MaxLength != nil {
		add(scalars[f.Type.Scalar].length, pointer(receiver, f), least(c.MinLength),
			most(c.MaxLength))
	}
	if c.Pattern != "" {
		add("Pattern", pointer(receiver, f), jen.Id(g.patterns[f]))
	}
	for _, bound := range []struct {
		function string
		literal  *string
	}{{"AtLeast", c.Min}, {"AtMost", c.Max}} {
		if bound.literal == nil {
			continue
		}
		n, err := number(*bound.literal)
		if err != nil {
			return nil, fmt.Errorf("limit of %s: %w", f.Name, err)
		}
		add(bound.function, pointer(receiver, f), n)
	}
	return checks, nil
}

// least makes a lower limit, which is 0 if there is none; most makes an upper one, which is -1 if
// there is none.
func least(n *int) jen.Code { return limit(n, 0) }
func most(n *int) jen.Code  { return limit(n, -1) }

func limit(n *int, none int) jen.Code {
	if n == nil {
		return jen.Lit(none)
	}
	return jen.Lit(*n)
}

// pointer makes a field's address, or the field itself if it can be nil:
//
//	&e.Email
func pointer(receiver string, f *catalogue.Field) jen.Code {
	if isPointer(f.Type) || hasNil(f.Type) {
		return selector(receiver, f.GoName)
	}
	return jen.Op("&").Add(selector(receiver, f.GoName))
}
