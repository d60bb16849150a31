package catalogue

import (
	"strings"

	"github.com/outboxgen/outboxgen/gen/diag"
)

// recursion reports structs that contain themselves, unless through an optional, a list or a map.
// It reports one circle for each group of types that contain one another.
func (k *checker) recursion() {
	nodes := map[*Type]int{}
	for i, t := range k.typeDrafts {
		nodes[t.Type] = i
	}
	var arrows []arrow[*fieldDraft]
	for i, t := range k.typeDrafts {
		for _, f := range t.fieldDrafts {
			if f.expr != nil && f.Type.Kind == KindNamed && !f.Type.Optional {
				arrows = append(arrows,
					arrow[*fieldDraft]{from: i, to: nodes[f.Type.Named], why: f})
			}
		}
	}
	for _, circle := range circles(len(k.typeDrafts), arrows) {
		k.reportCircle(circle)
	}
}

func (k *checker) reportCircle(circle []arrow[*fieldDraft]) {
	var steps []string
	for _, a := range circle {
		steps = append(steps, k.typeDrafts[a.from].Name+"."+a.why.Name)
	}
	last := circle[len(circle)-1].why
	d := diag.New(diag.TypeRecursive, last.expr.pos, "type %s contains itself: %s",
		k.typeDrafts[circle[0].from].Name, listed(steps, ", "))
	d = d.WithHelp("make one of them optional, a list or a map")
	for i, a := range circle[:len(circle)-1] {
		if i < maxListed {
			d = d.WithRelated(a.why.expr.pos, "%s contains %s", k.typeDrafts[a.from].Name,
				k.typeDrafts[a.to].Name)
		}
	}
	k.add(d)
}

// keys resolves every event's key to the path of fields that leads to it.
func (k *checker) keys() {
	for _, e := range k.eventDrafts {
		if e.keyWord.isSet() && e.valid {
			k.key(e)
		}
	}
}

func (k *checker) key(e *eventDraft) {
	fields, owner := e.fieldDrafts, e.TypeName()
	var path []*Field
	elements := strings.Split(e.keyWord.text, ".")
	for i, name := range elements {
		f := findField(fields, name)
		if f == nil {
			k.unknownKeyField(e, name, owner, fields)
			return
		}
		if f.expr == nil || !k.keyElement(e, f, i == len(elements)-1) {
			return
		}
		path = append(path, f.Field)
		if f.Type.Kind == KindNamed {
			next := k.typesByName[f.Type.Named.Name]
			fields, owner = next.fieldDrafts, "type "+next.Name
		}
	}
	e.Key = path
}

func findField(fields []*fieldDraft, name string) *fieldDraft {
	for _, f := range fields {
		if f.Name == name {
			return f
		}
	}
	return nil
}

func (k *checker) unknownKeyField(e *eventDraft, name, owner string, fields []*fieldDraft) {
	var names []string
	for _, f := range fields {
		names = append(names, f.Name)
	}
	what := "key " + quoted(name)
	if name != e.keyWord.text {
		what = quoted(name) + " in key " + quoted(e.keyWord.text)
	}
	d := diag.New(diag.EventKeyField, e.keyWord.pos, "%s is not a field of %s", what, owner)
	if near := k.nearest(name, names); near != "" {
		d = d.WithHelp("did you mean %q?", near)
	} else if len(names) > 0 {
		d = d.WithHelp("its fields are %s", listed(names, ", "))
	}
	k.add(d)
}

// keyElement checks a field on the way to a key. The last one is the key itself; the others are
// structs.
func (k *checker) keyElement(e *eventDraft, f *fieldDraft, last bool) bool {
	report := func(rule, format string, args ...any) diag.Diagnostic {
		return diag.New(rule, e.keyWord.pos, format, args...).WithRelated(f.Pos, "field %s", f.Name)
	}
	isStruct := f.Type.Kind == KindNamed && f.Type.Named.Enum == nil
	switch {
	case f.Type.Optional:
		k.add(report(diag.EventKeyType, "key %q is optional at %s, and an event always has its key",
			e.keyWord.text, f.Name).
			WithHelp("make the field required, or choose another key"))
	case f.PII:
		k.add(report(diag.EventKeyPII,
			"key %q is personal data, and a key reaches headers and logs", e.keyWord.text).
			WithHelp("choose an id"))
	case last && isStruct:
		k.add(report(diag.EventKeyType, "key %q is a struct", e.keyWord.text).
			WithHelp("choose one of its fields: %s.…", e.keyWord.text))
	case last && !f.Type.Scalar.IsKey():
		k.add(report(diag.EventKeyType, "a key cannot be of type %s", f.Type).
			WithHelp("it can be %s", strings.Join(scalarsThat(Scalar.IsKey), ", ")))
	case !last && !isStruct:
		k.add(report(diag.EventKeyField, "%q in key %q is of type %s and has no fields", f.Name,
			e.keyWord.text, f.Type))
	default:
		return true
	}
	return false
}

// subscriptions resolves the events that consumers handle and emit.
func (k *checker) subscriptions() {
	for _, c := range k.consumerDrafts {
		c.Handles = k.eventList(c.handledNames, c.Name+" handles")
		c.Emits = k.eventList(c.emittedNames, c.Name+" emits")
	}
}

func (k *checker) eventList(words []word, what string) []*Event {
	var events []*Event
	first := map[string]diag.Pos{}
	for _, w := range words {
		pos, twice := first[w.text]
		e := k.eventsByName[w.text]
		switch {
		case twice:
			k.add(diag.New(diag.ConsumerDuplicate, w.pos, "%s %q twice", what, w.text).
				WithHelp("remove it").WithRelated(pos, "the first one"))
			continue
		case e == nil:
			k.unknownEvent(w, what)
		default:
			events = append(events, e.Event)
		}
		first[w.text] = w.pos
	}
	return events
}

func (k *checker) unknownEvent(w word, what string) {
	if strings.Contains(w.text, ":") {
		k.add(diag.New(diag.NotSupportedYet, w.pos,
			"an event of another catalogue, %q, is not supported yet", w.text))
		return
	}
	name, _, versioned := strings.Cut(w.text, "@")
	var versions []string
	for _, e := range k.eventNames {
		if strings.HasPrefix(e, name+"@") {
			versions = append(versions, e)
		}
	}
	d := diag.New(diag.ConsumerEvent, w.pos, "%s %q, which is not an event of this catalogue", what,
		w.text)
	near := ""
	if wanted := w.text; len(versions) == 0 {
		if !versioned {
			wanted += "@1"
		}
		near = k.nearest(wanted, k.eventNames)
	}
	switch {
	case len(versions) > 0 && !versioned:
		d = d.WithHelp("add the version: %s", listed(versions, " or "))
	case len(versions) > 0:
		d = d.WithHelp("its versions are %s", listed(versions, " and "))
	case near != "":
		d = d.WithHelp("did you mean %q?", near)
	default:
		d = d.WithHelp("declare it under events")
	}
	k.add(d)
}
