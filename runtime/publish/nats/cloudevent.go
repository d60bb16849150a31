package outboxnats

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// Headers follow the NATS Protocol Binding for CloudEvents 1.0, 3.1: each attribute is a header that begins with ce-.
// partitionkey is the attribute of CloudEvents' Partitioning Extension, causationid one of our own.

const (
	attributePrefix = "ce-"
	serverPrefix    = "nats-" // of headers that tell the server what to do
	specVersion     = "1.0"
)

// messageID tells messages apart that a stream must not take for duplicates: two versions of one
// fact share an id. Both attributes "id" and "source" are the same then, which CloudEvents allows
// for events that a consumer may take for duplicates; "type" differs.
func messageID(m *outbox.Message) string { return m.ID.String() + "/" + m.TypeName() }

// headersOf returns m's attributes and headers. Headers of the user's go as they are.
func headersOf(m *outbox.Message) (nats.Header, error) {
	h := make(nats.Header, len(m.Headers)+9)
	for name, value := range m.Headers {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, serverPrefix) || strings.HasPrefix(lower, attributePrefix) {
			return nil, fmt.Errorf("a header may not be named %q", name)
		}
		h.Set(name, value)
	}
	attribute := func(name, value string) {
		if value != "" {
			h.Set(attributePrefix+name, percentEncode(value))
		}
	}
	attribute("specversion", specVersion)
	attribute("id", m.ID.String())
	attribute("type", m.TypeName())
	attribute("source", m.Source)
	attribute("datacontenttype", m.ContentType)
	attribute("partitionkey", m.Key)
	if !m.CreatedAt.IsZero() {
		attribute("time", m.CreatedAt.UTC().Format(time.RFC3339Nano))
	}
	if m.CausationID != uuid.Nil {
		attribute("causationid", m.CausationID.String())
	}
	return h, nil
}

var (
	// errForeign says that a message was not published by an outbox.
	errForeign = errors.New("not a CloudEvent in binary mode with a type of the form name@version")
	// errMalformed says that it seems to have been, and cannot be read.
	errMalformed = errors.New("malformed attribute")
)

// maxTypeBytes is more than a catalogue allows. A longer one is a stranger's, and is not to fill
// logs.
const maxTypeBytes = 255

// messageFrom is the inverse of headersOf. Headers that an event could not carry are left out. Its
// errors wrap errForeign or errMalformed, and contain no values.
func messageFrom(subject string, h nats.Header, data []byte) (*outbox.Message, error) {
	attributes, headers := map[string]string{}, map[string]string{}
	// Of several that differ in case, the same one always counts.
	for _, name := range slices.Sorted(maps.Keys(h)) {
		lower := strings.ToLower(name) // NATS leaves the case of names to the reader
		switch attribute, found := strings.CutPrefix(lower, attributePrefix); {
		case len(h[name]) == 0:
		case found:
			attributes[attribute] = h[name][0]
		case !strings.HasPrefix(lower, serverPrefix):
			headers[name] = h[name][0]
		}
	}
	typeName, _ := percentDecode(attributes["type"])
	eventType, version, err := storage.ParseTypeName(typeName)
	if err != nil || version > math.MaxInt32 || len(typeName) > maxTypeBytes ||
		attributes["specversion"] != specVersion {
		return nil, errForeign
	}
	m := &outbox.Message{
		Type: eventType, Version: int32(version), Topic: subject,
		Headers: outbox.AcceptHeaders(headers), Payload: data,
	}
	if err := setAttributes(m, attributes); err != nil {
		return nil, err
	}
	return m, nil
}

func setAttributes(m *outbox.Message, attributes map[string]string) error {
	for name, read := range map[string]func(string) error{
		"id":              func(s string) (err error) { m.ID, err = uuid.Parse(s); return err },
		"source":          func(s string) error { m.Source = s; return nil },
		"datacontenttype": func(s string) error { m.ContentType = s; return nil },
		"partitionkey":    func(s string) error { m.Key = s; return nil },
		"time":            func(s string) (err error) { m.CreatedAt, err = time.Parse(time.RFC3339Nano, s); return err },
		"causationid":     func(s string) (err error) { m.CausationID, err = uuid.Parse(s); return err },
	} {
		encoded, found := attributes[name]
		if !found && name != "id" {
			continue
		}
		value, err := percentDecode(encoded)
		if err == nil {
			err = read(value)
		}
		if err != nil {
			return fmt.Errorf("%w: %s", errMalformed, name)
		}
	}
	return nil
}

// percentEncode encodes what section 3.1.3.2 of the binding names.
func percentEncode(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c == '"' || c == '%' || c > '~' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// percentDecode accepts quoted strings too, as older versions of the binding wrote them.
func percentDecode(s string) (string, error) {
	if len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"' {
		s = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(s[1 : len(s)-1])
	}
	s, err := url.PathUnescape(s)
	if err == nil && !utf8.ValidString(s) {
		err = errMalformed
	}
	return s, err
}
