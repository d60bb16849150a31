package catalogue

import (
	"slices"
	"strings"

	"github.com/outboxgen/outboxgen/gen/diag"
)

// fieldNames checks that the fields of a struct differ in Go and in JSON.
func (k *checker) fieldNames() {
	personal := k.personalTypes()
	for _, t := range k.typeDrafts {
		k.structNames(t.fieldDrafts, personal[t.Type])
	}
	for _, e := range k.eventDrafts {
		k.structNames(e.fieldDrafts, holdsPersonal(e.fieldDrafts, personal))
	}
}

func (k *checker) structNames(fields []*fieldDraft, personal bool) {
	goNames, jsonNames := newScope("Go"), newScope("JSON, where case does not count")
	for _, f := range fields {
		if !f.valid {
			continue
		}
		pos, what := f.Pos, "field "+f.Name
		if f.goNameWord.isSet() {
			pos = f.goNameWord.pos
		}
		switch {
		case slices.Contains(methodNames, f.GoName):
			k.add(diag.New(diag.NameReserved, pos, "%s is called %s in Go, as is a method of generated structs", what, f.GoName).
				WithHelp("give it a go_name"))
		case personal && slices.Contains(personalMethodNames, f.GoName):
			k.add(diag.New(diag.NameReserved, pos, "%s is called %s in Go, as is a method of structs that hold personal data", what, f.GoName).
				WithHelp("give it a go_name"))
		default:
			k.claimName(goNames, f.GoName, f.GoName, what, "give one of them a go_name", pos)
		}
		pos = f.Pos
		if f.jsonNameWord.isSet() {
			pos = f.jsonNameWord.pos
		}
		k.claimName(jsonNames, strings.ToLower(f.JSONName), f.JSONName, what, "give one of them another json_name", pos)
	}
}

// personalTypes returns the types that hold personal data, be it in what they contain.
func (k *checker) personalTypes() map[*Type]bool {
	personal := map[*Type]bool{}
	for changed := true; changed; {
		changed = false
		for _, t := range k.typeDrafts {
			if !personal[t.Type] && holdsPersonal(t.fieldDrafts, personal) {
				personal[t.Type], changed = true, true
			}
		}
	}
	return personal
}

func holdsPersonal(fields []*fieldDraft, personal map[*Type]bool) bool {
	return slices.ContainsFunc(fields, func(f *fieldDraft) bool { return f.PII || personal[innermost(f.Type).Named] })
}
