package scenario

import (
	"fmt"
	"strings"
)

const (
	eventsPerConsumer = 10
	editedEvents      = 5 // that differ from one edition of a catalogue to the next
)

// typesFor is how many types a catalogue of so many events has.
func typesFor(events int) int { return events * 2 / 5 }

// catalogue returns a catalogue of at least 125 events, like those that people write: every event
// has a doc, a key and half a dozen fields, among them structs and enums that it shares with
// others. One in five types is an enum.
func catalogue(events, edition int) string {
	var b strings.Builder
	b.WriteString(`outboxgen: 1
service: bench/shop
go: {package: events, dir: events}
database: {engine: postgresql}
migrations: {dir: migrations, format: plain}
relay: {shards: 16}
defaults: {topic: bench.events}
`)
	enums := typesFor(events) / 5
	structs := typesFor(events) - enums
	b.WriteString("\ntypes:\n")
	for i := range enums {
		fmt.Fprintf(&b, "  State%d:\n    enum: [drafted, open, held, closed]\n    open: true\n", i)
	}
	for i := range structs {
		writeStruct(&b, i, structs)
	}
	b.WriteString("\nevents:\n")
	for i := range events {
		writeEvent(&b, i, structs, enums)
		if i < editedEvents {
			fmt.Fprintf(&b, "      edition_%d: int32\n", edition)
		}
	}
	b.WriteString("\nconsumers:\n")
	for i := 0; i < events; i += eventsPerConsumer {
		fmt.Fprintf(&b, "  consumer_%d:\n    handles:\n", i/eventsPerConsumer)
		for j := i; j < min(i+eventsPerConsumer, events); j++ {
			fmt.Fprintf(&b, "      - thing.changed_%d@1\n", j)
		}
	}
	return b.String()
}

// writeEvent writes event number i, which uses some of the structs and enums.
func writeEvent(b *strings.Builder, i, structs, enums int) {
	fmt.Fprintf(b, `  thing.changed_%d@1:
    doc: Thing %d was changed by somebody.
    key: thing_id
    payload:
      thing_id: uuid
      part: Part%d
      parts: {type: [Part%d], max_items: 100}
      state: State%d
      note: {type: "string?", max_length: 200}
      changed_at: timestamp
`, i, i, i%structs, (i+1)%structs, i%enums)
}

// writeStruct writes struct number i. Every other one contains the next one, and every tenth has
// personal data.
func writeStruct(b *strings.Builder, i, structs int) {
	fmt.Fprintf(b, `  Part%d:
    doc: A part of type %d.
    fields:
      name: {type: string, min_length: 1, max_length: 100}
      amount: {type: int64, min: 0}
      labels: {string: string}
`, i, i)
	if i%2 == 0 && i+1 < structs {
		fmt.Fprintf(b, "      within: Part%d?\n", i+1)
	}
	if i%10 == 0 {
		b.WriteString("      email: {type: string, pii: true, max_length: 254}\n")
	}
}
