package cloudevents

import (
	"fmt"
	"iter"
	"net/url"
	"strings"

	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// Binding is how a protocol carries an event in binary content mode: the payload is the message's
// body, and every attribute is a header. Headers of the event's own go beside them, as they are.
//
// The protocol bindings of the specification differ in a few points:
//
//	NATS (3.1)    {Prefix: "ce-", PercentEncoded: true}
//	Kafka (3.2)   {Prefix: "ce_", ContentType: "content-type"}
//	HTTP (3.1)    {Prefix: "ce-", ContentType: "Content-Type", PercentEncoded: true}
type Binding struct {
	// Prefix begins the name of every attribute's header.
	Prefix string
	// ContentType is the header that holds datacontenttype. Without it that attribute is a header
	// like the others.
	ContentType string
	// PercentEncoded is for protocols whose headers hold printable ASCII only: whatever else is in
	// the value of an attribute is percent-encoded, as are space, double quote and percent sign
	// (NATS and HTTP, 3.1.3.2).
	PercentEncoded bool
	// Reserved begins the names of headers which tell the broker what to do, such as "nats-". An
	// event may not have them, and those of a message are left out of the event. "" for none.
	Reserved string
}

// Encode calls set for every header of m: its own first, then its attributes. It returns an error
// if the name of one of m's own headers belongs to CloudEvents or to the protocol, whether in upper
// or lower case; some headers may have been set then.
func (b Binding) Encode(m *outbox.Message, set func(name, value string)) error {
	for name, value := range m.Headers {
		if b.owner(name) != user {
			return fmt.Errorf("cloudevents: a header may not be named %q", name)
		}
		set(name, value)
	}
	write(m, func(name, value string) {
		switch {
		case name == contentType && b.ContentType != "":
			set(b.ContentType, value)
		case b.PercentEncoded:
			set(b.Prefix+name, percentEncode(value))
		default:
			set(b.Prefix+name, value)
		}
	})
	return nil
}

// Decode makes an event of the headers and the body of a message that arrived on topic. Names of
// headers count in upper and lower case alike; if several stand for one attribute, the last counts.
// Headers of the event's own are reduced to those that an event can carry (outbox.AcceptHeaders).
//
// Its errors are ErrForeign if the message was not published by an outbox, and otherwise an
// *AttributeError: some attribute is missing or cannot be read.
func (b Binding) Decode(
	topic string, headers iter.Seq2[string, string], body []byte,
) (*outbox.Message, error) {
	values, own := map[string]string{}, map[string]string{}
	for name, value := range headers {
		switch b.owner(name) {
		case attributeHeader:
			values[strings.ToLower(name[len(b.Prefix):])] = b.decoded(value)
		case contentTypeHeader:
			values[contentType] = value
		case user:
			own[name] = value
		}
	}
	m, err := read(values)
	if err != nil {
		return nil, err
	}
	m.Topic, m.Headers, m.Payload = topic, outbox.AcceptHeaders(own), body
	return m, nil
}

// owner is whose a header is.
type owner int

const (
	user owner = iota
	attributeHeader
	contentTypeHeader
	protocol
)

func (b Binding) owner(name string) owner {
	switch {
	case hasPrefix(name, b.Prefix):
		return attributeHeader
	case b.ContentType != "" && strings.EqualFold(name, b.ContentType):
		return contentTypeHeader
	case b.Reserved != "" && hasPrefix(name, b.Reserved):
		return protocol
	default:
		return user
	}
}

// hasPrefix is strings.HasPrefix for upper and lower case alike.
func hasPrefix(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// decoded returns the value of an attribute's header. What is not percent-encoded correctly becomes
// text that is not valid UTF-8, which no attribute accepts.
func (b Binding) decoded(value string) string {
	if !b.PercentEncoded {
		return value
	}
	// Older versions of the bindings wrote quoted strings, which have to be accepted.
	if len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
		value = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(value[1 : len(value)-1])
	}
	text, err := url.PathUnescape(value)
	if err != nil {
		return "\xff"
	}
	return text
}

// percentEncode encodes what the bindings for NATS and HTTP name in 3.1.3.2.
func percentEncode(s string) string {
	plain := func(c byte) bool { return ' ' < c && c <= '~' && c != '"' && c != '%' }
	i := 0
	for i < len(s) && plain(s[i]) {
		i++
	}
	if i == len(s) {
		return s
	}
	const hex = "0123456789ABCDEF"
	encoded := append(make([]byte, 0, len(s)+8), s[:i]...)
	for ; i < len(s); i++ {
		if c := s[i]; plain(c) {
			encoded = append(encoded, c)
		} else {
			encoded = append(encoded, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(encoded)
}
