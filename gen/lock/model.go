package lock

import (
	"slices"
	"strings"

	"github.com/outboxgen/outboxgen/gen/catalogue"
)

// Model is a catalogue reduced to what can break its users when it changes: it has neither the
// documentation nor the order of declarations. The keys of maps are the names that the catalogue
// uses; values that are empty or false are left out.
type Model struct {
	Service   string              `json:"service"`
	Go        Go                  `json:"go"`
	Database  Database            `json:"database"`
	Relay     Relay               `json:"relay"`
	Types     map[string]Type     `json:"types,omitempty"`
	Events    map[string]Event    `json:"events,omitempty"` // by name and version: order.placed@1
	Consumers map[string]Consumer `json:"consumers,omitempty"`
}

// Go is the package of the generated code.
type Go struct {
	Package string `json:"package"`
	Dir     string `json:"dir"`
}

// Database is the engine, and what determines the names of the tables.
type Database struct {
	Engine string `json:"engine"`
	Schema string `json:"schema,omitempty"`
	Prefix string `json:"prefix,omitempty"`
}

// Relay is what relays and producers must agree on.
type Relay struct {
	Shards    int    `json:"shards"`
	Retention string `json:"retention"`
}

// Type is a struct, or an enum if Values is not empty.
type Type struct {
	GoName string            `json:"go_name"`
	Fields map[string]Field  `json:"fields,omitempty"`
	Values map[string]string `json:"values,omitempty"` // the constant's name by value
	Open   bool              `json:"open,omitempty"`
}

// Event is one version of an event.
type Event struct {
	GoName     string           `json:"go_name"`
	Topic      string           `json:"topic"`
	Key        string           `json:"key,omitempty"` // a dotted path
	Deprecated string           `json:"deprecated,omitempty"`
	Fields     map[string]Field `json:"fields,omitempty"`
}

// Field is a field of a struct or payload.
type Field struct {
	Type        string       `json:"type"` // as in the catalogue: T, T?, [T], {string: T}
	JSONName    string       `json:"json_name"`
	GoName      string       `json:"go_name"`
	PII         bool         `json:"pii,omitempty"`
	Deprecated  string       `json:"deprecated,omitempty"`
	Constraints *Constraints `json:"constraints,omitempty"`
}

// Constraints limit a field's value.
type Constraints struct {
	MinLength *int    `json:"min_length,omitempty"`
	MaxLength *int    `json:"max_length,omitempty"`
	Pattern   string  `json:"pattern,omitempty"`
	Min       *string `json:"min,omitempty"`
	Max       *string `json:"max,omitempty"`
	MinItems  *int    `json:"min_items,omitempty"`
	MaxItems  *int    `json:"max_items,omitempty"`
}

// Consumer is a handler of events. Lists are sorted.
type Consumer struct {
	GoName  string   `json:"go_name"`
	Handles []string `json:"handles,omitempty"`
	Emits   []string `json:"emits,omitempty"`
}

// Normalise reduces a catalogue to its model.
func Normalise(c *catalogue.Catalogue) Model {
	m := Model{
		Service: c.Service,
		Go:      Go{Package: c.Go.Package, Dir: c.Go.Dir},
		Database: Database{
			Engine: c.Database.Engine, Schema: c.Database.Schema, Prefix: c.Database.Prefix,
		},
		Relay:     Relay{Shards: c.Relay.Shards, Retention: c.Relay.Retention.String()},
		Types:     map[string]Type{},
		Events:    map[string]Event{},
		Consumers: map[string]Consumer{},
	}
	for _, t := range c.Types {
		m.Types[t.Name] = normaliseType(t)
	}
	for _, e := range c.Events {
		m.Events[e.TypeName()] = Event{
			GoName: e.GoName, Topic: e.Topic, Key: keyPath(e.Key), Deprecated: e.Deprecated,
			Fields: normaliseFields(e.Fields),
		}
	}
	for _, consumer := range c.Consumers {
		m.Consumers[consumer.Name] = Consumer{
			GoName: consumer.GoName, Handles: typeNames(consumer.Handles),
			Emits: typeNames(consumer.Emits),
		}
	}
	return m
}

func normaliseType(t *catalogue.Type) Type {
	out := Type{GoName: t.GoName, Fields: normaliseFields(t.Fields)}
	if t.Enum != nil {
		out.Open = t.Enum.Open
		out.Values = map[string]string{}
		for _, v := range t.Enum.Values {
			out.Values[v.Value] = v.GoName
		}
	}
	return out
}

func normaliseFields(fields []*catalogue.Field) map[string]Field {
	out := map[string]Field{}
	for _, f := range fields {
		field := Field{
			Type: f.Type.String(), JSONName: f.JSONName, GoName: f.GoName, PII: f.PII,
			Deprecated: f.Deprecated,
		}
		if f.Constraints.Any() {
			c := Constraints(f.Constraints)
			field.Constraints = &c
		}
		out[f.Name] = field
	}
	return out
}

func keyPath(path []*catalogue.Field) string {
	names := make([]string, len(path))
	for i, f := range path {
		names[i] = f.Name
	}
	return strings.Join(names, ".")
}

func typeNames(events []*catalogue.Event) []string {
	names := make([]string, len(events))
	for i, e := range events {
		names[i] = e.TypeName()
	}
	slices.Sort(names)
	return names
}
