package cloudevents

import (
	"bytes"
	"encoding/json"
	"mime"
	"strings"

	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// MediaTypeJSON is the content type of what EncodeJSON returns (JSON Event Format, 3).
const MediaTypeJSON = "application/cloudevents+json"

// EncodeJSON returns m as one JSON object, attributes and payload (structured content mode). A JSON
// payload is the member data, without blanks between its tokens; any other is data_base64 (JSON
// Event Format, 3.1.1). Headers of m's own are not part of it: the protocol carries them.
func EncodeJSON(m *outbox.Message) ([]byte, error) {
	object := map[string]any{}
	write(m, func(name, value string) { object[name] = value })
	switch {
	case len(m.Payload) == 0:
	case isJSON(m.ContentType) && json.Valid(m.Payload):
		object["data"] = json.RawMessage(m.Payload)
	default:
		object["data_base64"] = m.Payload
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(object)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// DecodeJSON makes an event of a body as EncodeJSON returns it, which arrived on topic. Its errors
// are those of Binding.Decode; data and data_base64 count as attributes.
func DecodeJSON(topic string, body []byte) (*outbox.Message, error) {
	var object map[string]json.RawMessage
	if json.Unmarshal(body, &object) != nil {
		return nil, ErrForeign
	}
	values := map[string]string{}
	for name, raw := range object {
		// A member that is null is absent (JSON Event Format, 2.2). One that is no string is not an
		// attribute of ours.
		var text *string
		if json.Unmarshal(raw, &text) == nil && text != nil {
			values[name] = *text
		}
	}
	m, err := read(values)
	if err != nil {
		return nil, err
	}
	m.Topic = topic
	m.Payload, err = data(object, m.ContentType)
	return m, err
}

// data returns the payload (JSON Event Format, 3.1.2).
func data(object map[string]json.RawMessage, contentType string) ([]byte, error) {
	if raw, found := object["data_base64"]; found {
		var payload []byte
		if json.Unmarshal(raw, &payload) != nil {
			return nil, &AttributeError{"data_base64", "is not Base64"}
		}
		return payload, nil
	}
	raw, found := object["data"]
	if !found || isJSON(contentType) {
		return raw, nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return nil, &AttributeError{"data", "is not text"}
	}
	return []byte(text), nil
}

// isJSON reports whether a content type declares JSON. Without one the payload counts as JSON (JSON
// Event Format, 3.1.1).
func isJSON(contentType string) bool {
	mediaType, _, err := mime.ParseMediaType(contentType)
	return contentType == "" || err == nil &&
		(strings.HasSuffix(mediaType, "/json") || strings.HasSuffix(mediaType, "+json"))
}
