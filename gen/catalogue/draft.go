package catalogue

import (
	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/source"
)

// A draft is a catalogue that has been read but not yet resolved: it refers to things by name, and knows where each was said.
type draft struct {
	Catalogue
	pos          diag.Pos // of the root
	defaultTopic string
	types        []*typeDraft
	events       []*eventDraft
	consumers    []*consumerDraft
}

// word is a name and where it stands. The zero word was never said.
type word struct {
	text string
	pos  diag.Pos
}

func (w word) said() bool { return w.pos.Line != 0 }

type typeDraft struct {
	*Type
	valid  bool // the name is one
	fields []*fieldDraft
	struc  word // the key fields
	enum   word // the key enum
	open   word // the key open
}

type fieldDraft struct {
	*Field
	valid       bool // the name is one
	expr        *typeExpr
	constraints []constraintDraft
	jsonName    word
	goName      word
}

// constraintDraft is a constraint as written.
type constraintDraft struct {
	name   string
	number string // the text of every constraint but pattern
	keyPos diag.Pos
	pos    diag.Pos // of the value
}

type eventDraft struct {
	*Event
	valid  bool // the name is one
	topic  word
	key    word
	fields []*fieldDraft
}

type consumerDraft struct {
	*Consumer
	valid   bool // the name is one
	handles []word
	emits   []word
}

// typeExpr is a type as written, before its names are resolved.
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
