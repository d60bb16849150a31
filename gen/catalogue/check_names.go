package catalogue

import (
	"fmt"
	"slices"

	"github.com/outboxgen/outboxgen/gen/diag"
)

// The exported names of generated code. Emitters use no others, so that every collision is found
// here.

// fixedNames are in every generated package.
var fixedNames = []string{
	"Event", "Enqueue", "EnqueueVersions", "Queue", "QueueVersions", "Store", "NewStore",
	"Service", "Shards", "Retention", "Notify", "Doorbell",
}

// methodNames are the methods of generated structs. A field cannot have one of these names.
var methodNames = []string{"EventType", "EventKey", "Validate", "LogValue", "MarshalJSON",
	"UnmarshalJSON"}

// personalMethodNames are the further methods of structs that hold personal data. They keep it out
// of what is printed.
var personalMethodNames = []string{"Format", "GoString", "String"}

// eventNames are generated for every event; %s is its Go name.
var eventNames = []string{"%s", "Enqueue%s", "Queue%s"}

// consumerNames are generated for every consumer; %s is its Go name.
var consumerNames = []string{"%sConsumer", "%sTx", "New%s"}

// scope holds the names that are taken in one place, such as a package or a struct, and by what.
type scope struct {
	place string // in a message: "Go", "JSON" …
	taken map[string]claim
}

type claim struct {
	what string
	pos  diag.Pos
}

func newScope(place string) scope { return scope{place: place, taken: map[string]claim{}} }

// claimName takes a name for something, and reports it if the name is taken already. Two names
// collide if their keys are equal.
func (k *checker) claimName(s scope, key, name, what, help string, pos diag.Pos) {
	first, ok := s.taken[key]
	if !ok {
		s.taken[key] = claim{what: what, pos: pos}
		return
	}
	pair := [2]diag.Pos{first.pos, pos}
	if first.pos == pos || k.collisions[pair] {
		return // Two events of one name collide in all that is generated: one report is enough.
	}
	k.collisions[pair] = true
	d := diag.New(diag.NameCollision, pos, "%s and %s are both called %s in %s", first.what, what,
		name, s.place)
	k.add(d.WithHelp("%s", help).WithRelated(first.pos, "%s", first.what))
}

// packageNames checks that no two things in the generated package share a name.
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

// isDuplicate reports whether an equal value stands before v, which has been reported as such.
func isDuplicate(values []EnumValue, v EnumValue) bool {
	for _, other := range values {
		if other.Value == v.Value {
			return other.Pos != v.Pos
		}
	}
	return false
}

// fileNames checks that no two generated files share a name.
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
