package catalogue

import (
	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/source"
)

var typeTable = table[typeDraft]{what: "a type", keys: []key[typeDraft]{
	{"doc", kindText, false, "what it is, in sentences",
		func(_ *decoder, p source.Pair, t *typeDraft) {
			t.Doc = text(p.Value)
		}},
	{"fields", kindMapping, false, "the fields of a struct",
		func(d *decoder, p source.Pair, t *typeDraft) {
			t.fieldsKey = wordOf(p.Key)
			t.fieldDrafts = d.fields(p)
			if len(p.Value.Pairs) == 0 {
				d.add(diag.New(diag.TypeShape, p.Value.Pos, "type %s has no fields", t.Name).
					WithHelp("add one, or remove the type"))
			}
		}},
	{"enum", kindList, false, "the values of an enum",
		func(d *decoder, p source.Pair, t *typeDraft) {
			t.enumKey = wordOf(p.Key)
			t.Enum = &Enum{}
			for _, w := range d.texts(p) {
				t.Enum.Values = append(t.Enum.Values, EnumValue{Value: w.text, Pos: w.pos})
			}
		}},
	{"open", kindBool, false, "true: a reader keeps a value that it does not know",
		func(_ *decoder, p source.Pair, t *typeDraft) {
			if p.Value.Text == "true" {
				t.openKey = wordOf(p.Key)
			}
		}},
	{name: "union", doc: "declare a struct with an optional field for each of its forms"},
	{name: "reserved"}, {name: "deprecated"}, {name: "previous_names"},
}}

func (d *decoder) types(p source.Pair, c *draft) {
	for _, entry := range p.Value.Pairs {
		t := &typeDraft{Type: &Type{Name: entry.Key.Text, GoName: entry.Key.Text,
			Pos: entry.Key.Pos}}
		t.valid = d.typeName(entry.Key)
		if d.fits(entry, kindMapping) {
			typeTable.decode(d, entry.Value, entry.Key.Pos, t)
			d.typeShape(t, entry.Value)
		}
		c.typeDrafts = append(c.typeDrafts, t)
	}
}

// typeShape checks that a type is either a struct or an enum.
func (d *decoder) typeShape(t *typeDraft, n *source.Node) {
	switch {
	case t.fieldsKey.isSet() && t.enumKey.isSet():
		d.add(diag.New(diag.TypeShape, t.enumKey.pos, "type %s has both fields and values", t.Name).
			WithHelp("make two types of it").WithRelated(t.fieldsKey.pos, "the fields"))
	case n.Get("fields") == nil && n.Get("enum") == nil && n.Get("union") == nil:
		d.add(diag.New(diag.TypeShape, t.Pos, "type %s has neither fields nor values", t.Name).
			WithHelp("add fields: to make a struct of it, or enum: to make an enum"))
	case t.openKey.isSet() && t.Enum == nil:
		d.add(diag.New(diag.TypeShape, t.openKey.pos,
			"type %s is a struct, and only an enum can be open", t.Name).
			WithHelp("remove open"))
	case t.Enum != nil:
		t.Enum.Open = t.openKey.isSet()
	}
}

var fieldTable = table[fieldDraft]{what: "a field", keys: []key[fieldDraft]{
	{"type", kindType, true, "a type, such as string? or [OrderLine]",
		func(d *decoder, p source.Pair, f *fieldDraft) {
			f.expr = d.typeExpr(p.Value)
		}},
	{"doc", kindText, false, "what it is, in sentences",
		func(_ *decoder, p source.Pair, f *fieldDraft) {
			f.Doc = text(p.Value)
		}},
	{"pii", kindBool, false, "true: personal data, kept out of logs",
		func(_ *decoder, p source.Pair, f *fieldDraft) {
			f.PII = p.Value.Text == "true"
		}},
	{"deprecated", kindText, false, "what to use instead",
		func(_ *decoder, p source.Pair, f *fieldDraft) {
			f.Deprecated = text(p.Value)
		}},
	{"json_name", kindText, false, "its name in JSON",
		func(_ *decoder, p source.Pair, f *fieldDraft) {
			f.jsonNameWord = wordOf(p.Value)
		}},
	{"go_name", kindText, false, "its name in Go", func(_ *decoder, p source.Pair, f *fieldDraft) {
		f.goNameWord = wordOf(p.Value)
	}},
	constraintKey("min_length", kindInteger, "the least characters of a string, or bytes"),
	constraintKey("max_length", kindInteger, "the most characters of a string, or bytes"),
	constraintKey("pattern", kindText, "an RE2 expression that a string matches"),
	constraintKey("min", kindNumber, "the least number"),
	constraintKey("max", kindNumber, "the greatest number"),
	constraintKey("min_items", kindInteger, "the fewest items of a list or entries of a map"),
	constraintKey("max_items", kindInteger, "the most items of a list or entries of a map"),
	{name: "encode",
		doc: "declare the field as it is in JSON, or as json, and convert it in your code"},
	{name: "default", doc: "make the field optional, and fill it in your code"},
	{name: "example"}, {name: "renamed_from"}, {name: "previous_names"}, {name: "reserved"},
}}

func constraintKey(name string, k kind, doc string) key[fieldDraft] {
	return key[fieldDraft]{name, k, false, doc, func(_ *decoder, p source.Pair, f *fieldDraft) {
		c := constraintDraft{name: name, text: p.Value.Text, keyPos: p.Key.Pos, pos: p.Value.Pos}
		f.constraintDrafts = append(f.constraintDrafts, c)
	}}
}

// fields reads the fields of a struct or a payload.
func (d *decoder) fields(p source.Pair) []*fieldDraft {
	var fields []*fieldDraft
	for _, entry := range p.Value.Pairs {
		f := &fieldDraft{Field: &Field{Name: entry.Key.Text, Pos: entry.Key.Pos}}
		f.valid = d.fieldName(entry.Key)
		switch {
		case !d.fits(entry, kindType):
		case isLongForm(entry.Value):
			fieldTable.decode(d, entry.Value, entry.Key.Pos, f)
		default:
			f.expr = d.typeExpr(entry.Value)
		}
		f.decideNames(d)
		fields = append(fields, f)
	}
	return fields
}

// isLongForm reports whether a field is written as {type: T, ...}. A mapping whose first key is the
// name of a scalar is meant as a map, such as {string: T}.
func isLongForm(n *source.Node) bool {
	if n.Kind != source.Mapping {
		return false
	}
	return n.Get("type") != nil || len(n.Pairs) == 0 || !isScalarName(n.Pairs[0].Key.Text)
}

// decideNames decides what a field is called in JSON and in Go.
func (f *fieldDraft) decideNames(d *decoder) {
	f.JSONName, f.GoName = f.Name, camel(f.Name)
	if f.jsonNameWord.isSet() && d.jsonName(f.jsonNameWord) {
		f.JSONName = f.jsonNameWord.text
	}
	if f.goNameWord.isSet() && d.goName(f.goNameWord) {
		f.GoName = f.goNameWord.text
	}
}
