package catalogue

import (
	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/source"
)

// A draft is a catalogue that has been read but not yet resolved: it refers to things by name, and
// knows where each name stands. What is embedded in a draft is the part of the model that it
// becomes.
type draft struct {
	Catalogue
	pos            diag.Pos // of the root
	defaultTopic   string
	typeDrafts     []*typeDraft
	eventDrafts    []*eventDraft
	consumerDrafts []*consumerDraft
}

// word is a text and where it stands. The zero word is that of a key that the catalogue lacks.
type word struct {
	text string
	pos  diag.Pos
}

func (w word) isSet() bool { return w.pos.Line != 0 }

type typeDraft struct {
	*Type
	valid       bool // its name follows the rules
	fieldDrafts []*fieldDraft

	fieldsKey, enumKey word // the keys themselves
	openKey            word // set if open is true
}

type fieldDraft struct {
	*Field
	valid            bool      // its name follows the rules
	expr             *typeExpr // nil if there is no type, or one that does not exist
	constraintDrafts []constraintDraft
	jsonNameWord     word
	goNameWord       word
}

// constraintDraft is a constraint as it is written.
type constraintDraft struct {
	name   string
	text   string // of the value
	keyPos diag.Pos
	pos    diag.Pos // of the value
}

type eventDraft struct {
	*Event
	valid       bool // its name follows the rules
	topicWord   word
	keyWord     word
	fieldDrafts []*fieldDraft
}

type consumerDraft struct {
	*Consumer
	valid        bool // its name follows the rules
	handledNames []word
	emittedNames []word
}

// typeExpr is a type as it is written, before its names are resolved.
type typeExpr struct {
	kind     Kind
	name     string // of a scalar or a named type
	elem     *typeExpr
	optional bool
	pos      diag.Pos
}

// decoder reads nodes into a draft.
type decoder struct{ list diag.List }

func (d *decoder) add(x diag.Diagnostic) { d.list.Add(x) }

func wordOf(n *source.Node) word { return word{text: n.Text, pos: n.Pos} }
