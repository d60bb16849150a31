package catalogue

import (
	"strconv"

	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/source"
)

// Parse reads a catalogue and checks it. Diagnostics call it file; nothing is read from disk.
//
// The list is sorted. It holds every error of the catalogue, or, if there are none, what the lint
// rules find. The catalogue is nil if the list has errors.
func Parse(file string, data []byte) (*Catalogue, diag.List) {
	f, list := source.Load(file, data)
	if f == nil {
		return nil, list
	}
	d := &decoder{list: list}
	draft := d.catalogue(file, f)
	if draft != nil {
		check(draft, &d.list)
	}
	d.list.Sort()
	if d.list.HasErrors() {
		return nil, d.list
	}
	draft.Database.Features = draft.features()
	lint(draft, &d.list)
	d.list.Sort()
	return &draft.Catalogue, d.list
}

// typeName returns an event's name in messages, such as order.placed@1.
func typeName(name string, version int) string { return name + "@" + strconv.Itoa(version) }
