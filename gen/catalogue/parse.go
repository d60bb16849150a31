package catalogue

import (
	"strconv"

	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/source"
)

// Parse reads a catalogue and checks it. The file is what diagnostics call it; nothing is read from disk.
//
// The list is sorted and holds every problem of the catalogue, as well as what lint has to say. The catalogue is nil where the
// list has errors.
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

// typeName is an event's name on the wire.
func typeName(name string, version int) string { return name + "@" + strconv.Itoa(version) }
