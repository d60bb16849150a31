package catalogue

import (
	"strings"

	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/source"
)

// table lists the keys of a mapping. It is the one place that says what the language has: decoding,
// suggestions for unknown keys, missing keys, and keys that are not supported yet follow from it.
type table[T any] struct {
	what string // what the mapping describes, with its article
	keys []key[T]
}

// key is one key of a mapping.
type key[T any] struct {
	name     string
	kind     kind
	required bool
	doc      string // for people and editors; of a key that is not compiled yet, what to do instead
	decode   func(d *decoder, p source.Pair, into *T)
}

// kind is the form that a key's value must have.
type kind int

const (
	notYet           kind = iota // the language has the key, but it is not compiled yet
	kindText                     // text that is a name, or prose
	kindOptionalText             // text that may be ""
	kindInteger                  // decimal digits
	kindNumber                   // an integer or a decimal fraction
	kindBool                     // true or false
	kindSpan                     // a duration, such as 72h or 30d, or 0
	kindList
	kindMapping
	kindType // a type, in any of its forms
)

var kindNames = map[kind]string{
	kindText: "text", kindOptionalText: "text", kindInteger: "a whole number",
	kindNumber: "a number", kindBool: "true or false",
	kindSpan: "a duration such as 72h or 30d", kindList: "a list", kindMapping: "a mapping",
	kindType: "a type",
}

// decode reads a mapping. It reports missing keys at pos, usually the key that the mapping belongs
// to.
func (t table[T]) decode(d *decoder, n *source.Node, pos diag.Pos, into *T) {
	for _, p := range n.Pairs {
		k := t.find(p.Key.Text)
		switch {
		case k == nil:
			d.unknownKey(p.Key, t.what, t.names())
		case k.kind == notYet:
			d.add(diag.New(diag.NotSupportedYet, p.Key.Pos, "key %q of %s is not supported yet",
				k.name, t.what).WithHelp("%s", k.doc))
		case k.required && saysNothing(p.Value):
			d.add(diag.New(diag.ValueEmpty, p.Key.Pos, "key %q has no value", k.name).
				WithHelp("it is %s", k.doc))
		case d.fits(p, k.kind):
			k.decode(d, p, into)
		}
	}
	for _, k := range t.keys {
		if k.required && n.Get(k.name) == nil {
			d.add(diag.New(diag.KeyMissing, pos, "%s needs the key %q", t.what, k.name).
				WithHelp("it is %s", k.doc))
		}
	}
}

// saysNothing reports whether a value is none, blank or an empty list. An empty mapping is
// something.
func saysNothing(v *source.Node) bool {
	switch v.Kind {
	case source.Scalar:
		return v.IsEmpty() || strings.TrimSpace(v.Text) == ""
	case source.List:
		return len(v.Items) == 0
	default:
		return false
	}
}

func (t table[T]) find(name string) *key[T] {
	for i := range t.keys {
		if t.keys[i].name == name {
			return &t.keys[i]
		}
	}
	return nil
}

// names returns the keys that can be used today.
func (t table[T]) names() []string {
	var names []string
	for _, k := range t.keys {
		if k.kind != notYet {
			names = append(names, k.name)
		}
	}
	return names
}

func (d *decoder) unknownKey(n *source.Node, what string, known []string) {
	x := diag.New(diag.KeyUnknown, n.Pos, "unknown key %q of %s", n.Text, what)
	if near := nearest(n.Text, known); near != "" {
		x = x.WithHelp("did you mean %q?", near)
	} else {
		x = x.WithHelp("the keys are %s", strings.Join(known, ", "))
	}
	d.add(x)
}

// fits reports whether a key's value is of its kind. If not, it adds a diagnostic.
func (d *decoder) fits(p source.Pair, k kind) bool {
	v := p.Value
	switch {
	case v.Kind == source.Invalid:
		return false
	case v.IsEmpty():
		d.add(diag.New(diag.ValueEmpty, p.Key.Pos, "key %q has no value", p.Key.Text).
			WithHelp("give it one, or remove the key"))
		return false
	}
	want := source.Scalar
	switch k {
	case kindType:
		return true
	case kindList:
		want = source.List
	case kindMapping:
		want = source.Mapping
	}
	if v.Kind != want {
		d.add(diag.New(diag.ValueKind, v.Pos, "key %q takes %s, not %s", p.Key.Text, kindNames[k],
			v.Kind))
		return false
	}
	return want != source.Scalar || d.reads(v, k)
}

// reads reports whether a scalar is of its kind. If not, it adds a diagnostic.
func (d *decoder) reads(v *source.Node, k kind) bool {
	switch {
	case (k == kindText || k == kindOptionalText) && v.Reading != source.Text:
		d.quote(v)
	case k == kindText && strings.TrimSpace(v.Text) == "":
		d.add(diag.New(diag.ValueEmpty, v.Pos, "the text is empty").
			WithHelp("write something, or remove the key"))
	case k == kindInteger && !isInteger(v), k == kindNumber && !isNumber(v):
		d.add(diag.New(diag.ValueKind, v.Pos, "%s is not %s", shown(v), kindNames[k]).WithHelp("%s",
			numberHelp(v, k)))
	case k == kindBool && !isBool(v):
		d.add(diag.New(diag.ValueKind, v.Pos, "%s is not true or false", shown(v)).WithHelp("%s",
			boolHelp(v)))
	default:
		return true
	}
	return false
}

// numberHelp says how to write a number.
func numberHelp(v *source.Node, k kind) string {
	pattern, example := numberPattern, "12, -3 or 0.5"
	if k == kindInteger {
		pattern, example = integerPattern, "12"
	}
	switch unsigned := strings.ToLower(strings.TrimLeft(v.Text, "+-")); {
	case v.Reading == source.Text && pattern.MatchString(v.Text):
		return "remove the quotes"
	case unsigned == ".inf" || unsigned == ".nan":
		return "a number is finite: remove the key for no limit"
	default:
		return "write decimal digits, such as " + example
	}
}

func boolHelp(v *source.Node) string {
	if v.Reading == source.Text && (v.Text == "true" || v.Text == "false") {
		return "remove the quotes"
	}
	return "write true or false"
}

func (d *decoder) quote(v *source.Node) {
	d.add(diag.New(diag.YAMLQuote, v.Pos, "%s is %s, and text is expected", v.Text, v.Reading).
		WithHelp("quote it: %q", v.Text))
}

// shown is a scalar as a message quotes it.
func shown(v *source.Node) string {
	if v.Reading == source.Text {
		return quoted(v.Text)
	}
	return v.Text
}

// texts reads a list of texts. It reports items that are none, and leaves them out.
func (d *decoder) texts(p source.Pair) []word {
	var words []word
	for _, item := range p.Value.Items {
		switch {
		case item.Kind == source.Invalid:
		case item.IsEmpty():
			d.add(diag.New(diag.ValueEmpty, item.Pos, "an item of %q is empty", p.Key.Text).
				WithHelp("remove it, or quote it if text is meant"))
		case item.Kind != source.Scalar:
			d.add(diag.New(diag.ValueKind, item.Pos, "an item of %q is text, not %s", p.Key.Text,
				item.Kind))
		case item.Reading != source.Text:
			d.quote(item)
		default:
			words = append(words, wordOf(item))
		}
	}
	if len(p.Value.Items) == 0 {
		d.add(diag.New(diag.ValueEmpty, p.Value.Pos, "the list %q is empty", p.Key.Text).
			WithHelp("name something, or remove the key"))
	}
	return words
}
