package catalogue

import (
	"slices"
	"strings"

	"github.com/outboxgen/outboxgen/gen/diag"
)

// fieldNames checks that no two fields of a struct share a name in Go or in JSON.
func (k *checker) fieldNames() {
	for _, t := range k.typeDrafts {
		k.structNames(t.fieldDrafts, t.Personal)
	}
	for _, e := range k.eventDrafts {
		k.structNames(e.fieldDrafts, e.Personal)
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
			k.add(diag.New(diag.NameReserved, pos,
				"%s is called %s in Go, as is a method of generated structs", what, f.GoName).
				WithHelp("give it a go_name"))
		case personal && slices.Contains(personalMethodNames, f.GoName):
			k.add(diag.New(diag.NameReserved, pos,
				"%s is called %s in Go, as is a method of structs that hold personal data", what,
				f.GoName).
				WithHelp("give it a go_name"))
		default:
			k.claimName(goNames, f.GoName, f.GoName, what, "give one of them a go_name", pos)
		}
		pos = f.Pos
		if f.jsonNameWord.isSet() {
			pos = f.jsonNameWord.pos
		}
		k.claimName(jsonNames, strings.ToLower(f.JSONName), f.JSONName, what,
			"give one of them another json_name", pos)
	}
}

// personal finds the types and events that hold personal data, in their own fields or in what these
// contain.
func (k *checker) personal() {
	for changed := true; changed; {
		changed = false
		for _, t := range k.typeDrafts {
			if !t.Personal && anyPersonal(t.fieldDrafts) {
				t.Personal, changed = true, true
			}
		}
	}
	for _, e := range k.eventDrafts {
		e.Personal = anyPersonal(e.fieldDrafts)
	}
}

// anyPersonal reports whether a field is personal data, or of a type that is known to hold some.
func anyPersonal(fields []*fieldDraft) bool {
	return slices.ContainsFunc(fields, func(f *fieldDraft) bool {
		t := innermost(f.Type).Named
		return f.PII || t != nil && t.Personal
	})
}
