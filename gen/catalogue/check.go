package catalogue

import (
	"slices"
	"strings"

	"github.com/outboxgen/outboxgen/gen/diag"
)

// check resolves what a draft refers to by name, completes its Catalogue, and reports what does not
// fit together.
func check(c *draft, list *diag.List) {
	k := &checker{
		draft: c, list: list, typesByName: map[string]*typeDraft{},
		eventsByName: map[string]*eventDraft{},
		collisions:   map[[2]diag.Pos]bool{},
	}
	k.index()
	for _, step := range checks {
		step(k)
	}
	k.complete()
}

// checks are the steps, in an order in which each can rely on those before it.
var checks = []func(*checker){
	(*checker).resolveTypes,
	(*checker).enums,
	(*checker).constraints,
	(*checker).recursion,
	(*checker).topics,
	(*checker).versions,
	(*checker).keys,
	(*checker).subscriptions,
	(*checker).personal,
	(*checker).fieldNames,
	(*checker).packageNames,
	(*checker).fileNames,
}

type checker struct {
	*draft
	list         *diag.List
	typesByName  map[string]*typeDraft
	eventsByName map[string]*eventDraft // by name@version
	typeNames    []string               // in the order of the file, then those of the scalars
	eventNames   []string               // with versions, in the order of the file
	collisions   map[[2]diag.Pos]bool   // reported already
	searches     int                    // for a name that was meant
}

// maxSearches is how many unknown names of a catalogue get a suggestion: each is compared with all
// names that there are, which takes minutes if thousands of them are wrong.
const maxSearches = 100

// nearest calls the function of that name, maxSearches times at most.
func (k *checker) nearest(s string, candidates []string) string {
	if k.searches++; k.searches > maxSearches {
		return ""
	}
	return nearest(s, candidates)
}

func (k *checker) add(d diag.Diagnostic) { k.list.Add(d) }

func (k *checker) index() {
	for _, t := range k.typeDrafts {
		k.typesByName[t.Name] = t
		k.typeNames = append(k.typeNames, t.Name)
	}
	for _, s := range Scalars {
		k.typeNames = append(k.typeNames, string(s))
	}
	for _, e := range k.eventDrafts {
		if e.valid {
			k.eventsByName[e.TypeName()] = e
			k.eventNames = append(k.eventNames, e.TypeName())
		}
	}
}

// complete puts the drafts' parts of the model together.
func (k *checker) complete() {
	for _, t := range k.typeDrafts {
		t.Fields = fieldsOf(t.fieldDrafts)
		k.Types = append(k.Types, t.Type)
	}
	for _, e := range k.eventDrafts {
		e.Fields = fieldsOf(e.fieldDrafts)
		k.Events = append(k.Events, e.Event)
	}
	for _, c := range k.consumerDrafts {
		k.Consumers = append(k.Consumers, c.Consumer)
	}
}

func fieldsOf(drafts []*fieldDraft) []*Field {
	var fields []*Field
	for _, f := range drafts {
		fields = append(fields, f.Field)
	}
	return fields
}

// allFields calls f for every field of every struct and payload.
func (k *checker) allFields(f func(*fieldDraft)) {
	for _, t := range k.typeDrafts {
		for _, field := range t.fieldDrafts {
			f(field)
		}
	}
	for _, e := range k.eventDrafts {
		for _, field := range e.fieldDrafts {
			f(field)
		}
	}
}

// resolveTypes turns type expressions into references. It sets the expression of a field whose type
// is unknown to nil.
func (k *checker) resolveTypes() {
	k.allFields(func(f *fieldDraft) {
		if f.expr == nil {
			return
		}
		if ref := k.resolve(f.expr); ref != nil {
			f.Type = *ref
		} else {
			f.expr = nil
		}
	})
}

func (k *checker) resolve(x *typeExpr) *Ref {
	ref := &Ref{Kind: x.kind, Optional: x.optional}
	switch x.kind {
	case KindScalar:
		ref.Scalar = Scalar(x.name)
	case KindNamed:
		t, ok := k.typesByName[x.name]
		if !ok {
			k.unknownType(x)
			return nil
		}
		ref.Named = t.Type
	default:
		if ref.Elem = k.resolve(x.elem); ref.Elem == nil {
			return nil
		}
	}
	return ref
}

func (k *checker) unknownType(x *typeExpr) {
	d := diag.New(diag.TypeUnknown, x.pos, "unknown type %q", x.name)
	near, other := k.nearest(x.name, k.typeNames), scalarCalled(x.name)
	switch {
	case other != "" && !strings.EqualFold(near, x.name):
		d = d.WithHelp("did you mean %q?", other)
	case near != "":
		d = d.WithHelp("did you mean %q?", near)
	default:
		d = d.WithHelp("declare it under types")
	}
	k.add(d)
}

// enums checks that the values of every enum differ, and names their constants.
func (k *checker) enums() {
	for _, t := range k.typeDrafts {
		if t.Enum == nil {
			continue
		}
		first := map[string]diag.Pos{}
		for i := range t.Enum.Values {
			v := &t.Enum.Values[i]
			switch pos, twice := first[v.Value]; {
			case twice:
				k.add(diag.New(diag.EnumDuplicate, v.Pos, "%q is in %s a second time", v.Value,
					t.Name).
					WithHelp("remove it").WithRelated(pos, "the first one"))
			case !enumPattern.MatchString(v.Value) || len(v.Value) > maxName:
				k.add(diag.New(diag.EnumValue, v.Pos, "%q cannot be made the name of a constant",
					v.Value).
					WithHelp("use letters, digits and _ . -, beginning with a letter or digit"))
			default:
				v.GoName = enumGoName(t.GoName, v.Value)
			}
			if _, ok := first[v.Value]; !ok {
				first[v.Value] = v.Pos
			}
		}
	}
}

// topics gives every event its topic.
func (k *checker) topics() {
	for _, e := range k.eventDrafts {
		switch {
		case e.topicWord.isSet():
			e.Topic = e.topicWord.text
		case k.defaultTopic != "":
			e.Topic = k.defaultTopic
		case e.valid:
			k.add(diag.New(diag.EventTopic, e.Pos, "%s has no topic", e.TypeName()).
				WithHelp("add topic: to it, or to defaults"))
		}
	}
}

// versions checks that the versions of an event have no gaps. They need not begin at 1, because old
// versions are removed some day.
func (k *checker) versions() {
	latest := map[string]*eventDraft{}
	sorted := slices.Clone(k.eventDrafts)
	slices.SortStableFunc(sorted, func(a, b *eventDraft) int { return a.Version - b.Version })
	for _, e := range sorted {
		if !e.valid {
			continue
		}
		before := latest[e.Name]
		if before != nil && e.Version > before.Version+1 {
			k.add(diag.New(diag.EventVersionNoSkip, e.Pos, "version %d of %s follows version %d",
				e.Version, e.Name, before.Version).
				WithHelp("call it %s", typeName(e.Name, before.Version+1)).
				WithRelated(before.Pos, "version %d", before.Version))
		}
		latest[e.Name] = e
	}
}
