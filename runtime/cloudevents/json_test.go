package cloudevents_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outboxgen/outboxgen/runtime/cloudevents"
)

func TestAnEventAsJSON(t *testing.T) {
	m := order()
	m.Payload = []byte(`{"id": 7, "name": "<b>"}`)
	got, err := cloudevents.EncodeJSON(m)
	want := `{"causationid":"0198c0de-2222-7abc-8def-0123456789ab","data":{"id":7,"name":"<b>"},` +
		`"datacontenttype":"application/json","id":"0198c0de-1111-7abc-8def-0123456789ab",` +
		`"partitionkey":"a b\"%ü","source":"shop/orders","specversion":"1.0",` +
		`"time":"2026-11-30T11:00:00.000005Z","type":"order.placed@1"}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}

func TestEventsSurviveJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyMessage(t)
		m.Headers = nil // they are the protocol's
		if rapid.Bool().Draw(t, "a JSON payload") {
			m.Payload, _ = json.Marshal(rapid.MapOf(rapid.String(), rapid.Int()).Draw(t, "data"))
		}
		body, err := cloudevents.EncodeJSON(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := cloudevents.DecodeJSON(m.Topic, body)
		if err != nil {
			t.Fatal(err)
		}
		if json.Valid(m.Payload) {
			var compact bytes.Buffer
			_ = json.Compact(&compact, m.Payload)
			m.Payload = compact.Bytes()
		}
		if diff := cmp.Diff(m, got, byFields); diff != "" {
			t.Error(diff)
		}
	})
}

func TestThePayloadOfAJSONEvent(t *testing.T) {
	for members, want := range map[string]string{
		`"data":{"a": 1}`: `{"a": 1}`,
		`"data":"text"`:   `"text"`,
		`"data":null`:     `null`,
		`"source":null`:   ``,
		`"datacontenttype":"text/xml","data":"<a/>"`:            `<a/>`,
		`"datacontenttype":"text/xml","data_base64":"PGEvPg=="`: `<a/>`,
		`"datacontenttype":"application/x+json;a=b","data":[]`:  `[]`,
	} {
		m, err := cloudevents.DecodeJSON("t", event(members))
		if err != nil || string(m.Payload) != want {
			t.Errorf("%s: got %v, %v, want %s", members, m, err, want)
		}
	}
}

func TestWhatIsWrongWithAJSONEvent(t *testing.T) {
	for members, attribute := range map[string]string{
		`"data_base64":"secret!"`:                        "data_base64",
		`"datacontenttype":"text/xml","data":["secret"]`: "data",
		`"time":"secret"`:                                "time",
		`"id":null`:                                      "id",
		`"id":"secret"`:                                  "id",
	} {
		_, err := cloudevents.DecodeJSON("t", event(members))
		var wrong *cloudevents.AttributeError
		if !errors.As(err, &wrong) || wrong.Attribute != attribute ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", members, err)
		}
	}
	for _, body := range []string{"", "secret", "[]", "7", `"x"`, "null", "{}", `{"type":7}`} {
		_, err := cloudevents.DecodeJSON("t", []byte(body))
		if !errors.Is(err, cloudevents.ErrForeign) {
			t.Errorf("%s: got %v, want ErrForeign", body, err)
		}
	}
}

// event returns a JSON event with further members, the last of which counts.
func event(members string) []byte {
	return []byte(`{"specversion":"1.0","type":"x@1","id":"0198c0de-1111-7abc-8def-0123456789ab",` +
		members + `}`)
}
