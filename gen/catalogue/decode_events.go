package catalogue

import (
	"github.com/outboxgen/outboxgen/gen/source"
)

var eventTable = table[eventDraft]{what: "an event", keys: []key[eventDraft]{
	{"doc", kindText, false, "what has happened, in sentences",
		func(_ *decoder, p source.Pair, e *eventDraft) {
			e.Doc = text(p.Value)
		}},
	{"topic", kindText, false, "where it is published; without it, the topic under defaults",
		func(d *decoder, p source.Pair, e *eventDraft) {
			d.topic(p.Value)
			e.topicWord = wordOf(p.Value)
		}},
	{"key", kindText, false, "the field whose events keep their order, or a dotted path to one",
		func(_ *decoder, p source.Pair, e *eventDraft) {
			e.keyWord = wordOf(p.Value)
		}},
	{"payload", kindMapping, true, "the event's fields, or {} for none",
		func(d *decoder, p source.Pair, e *eventDraft) {
			e.fieldDrafts = d.fields(p)
		}},
	{"deprecated", kindText, false, "what to use instead",
		func(_ *decoder, p source.Pair, e *eventDraft) {
			e.Deprecated = text(p.Value)
		}},
	{name: "ordering"}, {name: "id"}, {name: "retry"}, {name: "max_bytes"}, {name: "headers"},
	{name: "reserved"},
	{name: "previous_names"},
}}

func (d *decoder) events(p source.Pair, c *draft) {
	for _, entry := range p.Value.Pairs {
		e := &eventDraft{Event: &Event{Pos: entry.Key.Pos}}
		e.Name, e.Version, e.valid = d.eventName(entry.Key)
		if e.valid {
			e.GoName, e.FileName = eventGoName(e.Name, e.Version), eventFileName(e.Name, e.Version)
		}
		if d.fits(entry, kindMapping) {
			eventTable.decode(d, entry.Value, entry.Key.Pos, e)
		}
		c.eventDrafts = append(c.eventDrafts, e)
	}
}

var consumerTable = table[consumerDraft]{what: "a consumer", keys: []key[consumerDraft]{
	{"doc", kindText, false, "what it does, in sentences",
		func(_ *decoder, p source.Pair, c *consumerDraft) {
			c.Doc = text(p.Value)
		}},
	{"handles", kindList, true, "a list of events, such as [order.placed@1]",
		func(d *decoder, p source.Pair, c *consumerDraft) {
			c.handledNames = d.texts(p)
		}},
	{"emits", kindList, false, "a list of the events that it enqueues while it handles one",
		func(d *decoder, p source.Pair, c *consumerDraft) {
			c.emittedNames = d.texts(p)
		}},
	{name: "max_attempts"}, {name: "on_failure"}, {name: "retention"}, {name: "previous_names"},
	{name: "deprecated"},
}}

func (d *decoder) consumers(p source.Pair, c *draft) {
	for _, entry := range p.Value.Pairs {
		x := &consumerDraft{Consumer: &Consumer{Name: entry.Key.Text, Pos: entry.Key.Pos}}
		if x.valid = d.consumerName(entry.Key); x.valid {
			x.GoName, x.FileName = camel(x.Name), consumerFileName(x.Name)
		}
		if d.fits(entry, kindMapping) {
			consumerTable.decode(d, entry.Value, entry.Key.Pos, x)
		}
		c.consumerDrafts = append(c.consumerDrafts, x)
	}
}
