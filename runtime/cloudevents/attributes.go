// Package cloudevents maps events to CloudEvents 1.0 and back: the attributes of an
// [outbox.Message] to those of the specification, and these either to the headers of a message
// (binary content mode, [Binding]) or to one JSON object (structured content mode, [EncodeJSON]).
//
// What is cited is the CloudEvents specification 1.0, by the headings of its sections, its JSON
// Event Format 1.0.2, and its protocol bindings for NATS (1.0.3, the first that has a binary mode),
// Kafka and HTTP (1.0.2), by numbers.
package cloudevents

import (
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// specVersion is the value of the attribute specversion ("REQUIRED Attributes").
const specVersion = "1.0"

// ErrForeign says that a message was not published by an outbox: it is no CloudEvent 1.0, or its
// type has not the form name@version.
var ErrForeign = errors.New("not a CloudEvent 1.0 with a type of the form name@version")

// AttributeError says what is wrong with an attribute of an event that seems to be an outbox's.
// It holds no value, since that may be personal data.
type AttributeError struct {
	Attribute string // by its name in the specification, such as partitionkey
	Problem   string // such as "is not a UUID"
}

func (e *AttributeError) Error() string {
	return fmt.Sprintf("cloudevents: the attribute %s %s", e.Attribute, e.Problem)
}

// attribute is one that an event may have beside specversion and type.
type attribute struct {
	name string
	get  func(m *outbox.Message) string // returns "" if m has none
	set  func(m *outbox.Message, value string) error
	want string // what set accepts, as in "is not a UUID"
}

const contentType = "datacontenttype"

// attributes are those of the specification ("Context Attributes"), partitionkey of its
// Partitioning extension, and causationid, an extension of our own: the id of the event whose
// handler enqueued this one.
//
// The specification requires a source of every event. One without it is accepted all the same: a
// consumer needs only the id.
var attributes = []attribute{
	{
		"id", func(m *outbox.Message) string { return m.ID.String() },
		func(m *outbox.Message, v string) (err error) { m.ID, err = uuid.Parse(v); return err },
		"a UUID",
	},
	{
		"source", func(m *outbox.Message) string { return m.Source },
		func(m *outbox.Message, v string) error { m.Source = v; return nil }, "text",
	},
	{
		contentType, func(m *outbox.Message) string { return m.ContentType },
		func(m *outbox.Message, v string) error { m.ContentType = v; return nil }, "text",
	},
	{
		"partitionkey", func(m *outbox.Message) string { return m.Key },
		func(m *outbox.Message, v string) error { m.Key = v; return nil }, "text",
	},
	{"time", formatTime, parseTime, "a timestamp of RFC 3339"},
	{
		"causationid", func(m *outbox.Message) string {
			if m.CausationID == uuid.Nil {
				return ""
			}
			return m.CausationID.String()
		},
		func(m *outbox.Message, v string) (err error) {
			m.CausationID, err = uuid.Parse(v)
			return err
		}, "a UUID",
	},
}

func formatTime(m *outbox.Message) string {
	if m.CreatedAt.IsZero() {
		return ""
	}
	return m.CreatedAt.UTC().Format(time.RFC3339Nano)
}

// parseTime refuses what formatTime could not write: a year of UTC that has not four digits.
func parseTime(m *outbox.Message, v string) (err error) {
	m.CreatedAt, err = time.Parse(time.RFC3339Nano, v)
	if year := m.CreatedAt.UTC().Year(); err == nil && (year < 0 || year > 9999) {
		err = errors.New("the year is out of range")
	}
	return err
}

// write calls set for every attribute that m has.
func write(m *outbox.Message, set func(name, value string)) {
	set("specversion", specVersion)
	set("type", m.TypeName())
	for _, a := range attributes {
		if value := a.get(m); value != "" {
			set(a.name, value)
		}
	}
}

// maxTypeBytes is more than a catalogue allows. A longer type is a stranger's, and is kept out of
// logs.
const maxTypeBytes = 255

// read makes an event of its attributes, by name. Attributes that an outbox does not know are left
// out, as the specification recommends for what a consumer does not support ("Notational
// Conventions").
func read(values map[string]string) (*outbox.Message, error) {
	typeName := values["type"]
	eventType, version, err := storage.ParseTypeName(typeName)
	if err != nil || version > math.MaxInt32 || len(typeName) > maxTypeBytes ||
		!utf8.ValidString(typeName) || values["specversion"] != specVersion {
		return nil, ErrForeign
	}
	m := &outbox.Message{Type: eventType, Version: int32(version)}
	for _, a := range attributes {
		value, found := values[a.name]
		switch {
		case !found && a.name == "id":
			return nil, &AttributeError{a.name, "is missing"}
		case found && (!utf8.ValidString(value) || a.set(m, value) != nil):
			return nil, &AttributeError{a.name, "is not " + a.want}
		}
	}
	return m, nil
}
