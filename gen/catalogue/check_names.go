package catalogue

import (
	"fmt"
	"slices"

	"github.com/outboxgen/outboxgen/gen/diag"
)

// What generated code calls its own things. Emitters take no other exported names, so that a
// collision is found here.

// fixedNames are in every generated package.
var fixedNames = []string{
	"Enqueue", "EnqueueVersions", "Queue", "QueueVersions", "Store", "NewStore", "Service",
	"Shards", "Retention", "Notify", "Doorbell",
}

// methodNames are those of generated structs, which no field can share.
var methodNames = []string{"EventType", "EventKey", "Validate", "LogValue", "MarshalJSON",
	"UnmarshalJSON"}

// personalMethodNames are those of structs that hold personal data, and keep it out of what is
// printed.
var personalMethodNames = []string{"Format", "GoString", "String"}

// eventNames are generated for every event; %s is its Go name.
var eventNames = []string{"%s", "Enqueue%s", "Queue%s"}

// consumerNames are generated for every consumer; %s is its Go name.
var consumerNames = []string{"%sConsumer", "%sEmitter", "New%s"}

// scope holds the names of one place, such as a package or a struct, and who took each.
type scope struct {
	where string // "Go", "JSON" …
	taken map[string]claim
}

type claim struct {
	what string
	pos  diag.Pos
}

func newScope(where string) scope { return scope{where: where, taken: map[string]claim{}} }

// claimName takes a name for something, and reports it where the name is taken already. The key is
// what must differ.
func (k *checker) claimName(s scope, key, name, what, help string, pos diag.Pos) {
	first, ok := s.taken[key]
	if !ok {
		s.taken[key] = claim{what: what, pos: pos}
		return
	}
	pair := [2]diag.Pos{first.pos, pos}
	if first.pos == pos || k.collisions[pair] {
		return // said already: two events of one name collide in all that is generated for them
	}
	k.collisions[pair] = true
	d := diag.New(diag.NameCollision, pos, "%s and %s are both called %s in %s", first.what, what,
		name, s.where)
	k.add(d.WithHelp("%s", help).WithRelated(first.pos, "%s", first.what))
}

// packageNames checks that everything that is generated into the package has a name of its own.
func (k *checker) packageNames() {
	s := newScope("Go")
	claimAll := func(patterns []string, goName, what, help string, pos diag.Pos) {
		for _, pattern := range patterns {
			name := fmt.Sprintf(pattern, goName)
			if slices.Contains(fixedNames, name) {
				k.add(diag.New(diag.NameReserved, pos,
					"%s is called %s in Go, as is something in every generated package", what,
					name).
					WithHelp("choose another name"))
				continue
			}
			k.claimName(s, name, name, what, help, pos)
		}
	}
	for _, t := range k.typeDrafts {
		if !t.valid {
			continue
		}
		claimAll([]string{"%s"}, t.GoName, "type "+t.Name, "rename one of them", t.Pos)
		if t.Enum == nil {
			continue
		}
		for _, v := range t.Enum.Values {
			if v.GoName != "" && !isDuplicate(t.Enum.Values, v) {
				claimAll([]string{"%s"}, v.GoName, fmt.Sprintf("value %q of %s", v.Value, t.Name),
					"rename one of them", v.Pos)
			}
		}
	}
	for _, e := range k.eventDrafts {
		if e.valid {
			claimAll(eventNames, e.GoName, "event "+e.TypeName(), "rename one of them", e.Pos)
		}
	}
	for _, c := range k.consumerDrafts {
		if c.valid {
			claimAll(consumerNames, c.GoName, "consumer "+c.Name, "rename one of them", c.Pos)
		}
	}
}

// isDuplicate reports whether an equal value stands before v: that has been reported already.
func isDuplicate(values []EnumValue, v EnumValue) bool {
	for _, other := range values {
		if other.Value == v.Value {
			return other.Pos != v.Pos
		}
	}
	return false
}

// fileNames checks that every generated file has a name of its own.
func (k *checker) fileNames() {
	s := newScope("the directory of generated files")
	for _, e := range k.eventDrafts {
		if e.valid {
			k.claimName(s, e.FileName, e.FileName, "event "+e.TypeName(), "rename one of them",
				e.Pos)
		}
	}
	for _, c := range k.consumerDrafts {
		if c.valid {
			k.claimName(s, c.FileName, c.FileName, "consumer "+c.Name, "rename one of them", c.Pos)
		}
	}
}
