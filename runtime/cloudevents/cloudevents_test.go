package cloudevents_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/outboxgen/outboxgen/runtime/cloudevents"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

var (
	nats  = cloudevents.Binding{Prefix: "ce-", PercentEncoded: true, Reserved: "nats-"}
	kafka = cloudevents.Binding{Prefix: "ce_", ContentType: "content-type"}
	http  = cloudevents.Binding{
		Prefix: "ce-", ContentType: "Content-Type", PercentEncoded: true,
	}
	bindings = map[string]cloudevents.Binding{"NATS": nats, "Kafka": kafka, "HTTP": http}
)

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func order() *outbox.Message {
	return &outbox.Message{
		ID:   uuid.MustParse("0198c0de-1111-7abc-8def-0123456789ab"),
		Type: "order.placed", Version: 1, Source: "shop/orders", Topic: "orders.placed",
		Key: `a b"%ü`, Payload: []byte(`{"id": 7}`), ContentType: "application/json",
		Headers:     map[string]string{outbox.HeaderTraceparent: traceparent, "tenant": "größe"},
		CausationID: uuid.MustParse("0198c0de-2222-7abc-8def-0123456789ab"),
		CreatedAt:   time.Date(2026, 11, 30, 12, 0, 0, 5000, time.FixedZone("", 3600)),
	}
}

// TestHeadersOnTheWire holds what consumers of other languages rely on.
func TestHeadersOnTheWire(t *testing.T) {
	for name, want := range map[string]map[string]string{
		"NATS": {
			"ce-specversion": "1.0", "ce-id": "0198c0de-1111-7abc-8def-0123456789ab",
			"ce-type": "order.placed@1", "ce-source": "shop/orders",
			"ce-datacontenttype": "application/json", "ce-partitionkey": "a%20b%22%25%C3%BC",
			"ce-time":        "2026-11-30T11:00:00.000005Z",
			"ce-causationid": "0198c0de-2222-7abc-8def-0123456789ab",
			"traceparent":    traceparent, "tenant": "größe",
		},
		"Kafka": {
			"ce_specversion": "1.0", "ce_id": "0198c0de-1111-7abc-8def-0123456789ab",
			"ce_type": "order.placed@1", "ce_source": "shop/orders",
			"content-type": "application/json", "ce_partitionkey": `a b"%ü`,
			"ce_time":        "2026-11-30T11:00:00.000005Z",
			"ce_causationid": "0198c0de-2222-7abc-8def-0123456789ab",
			"traceparent":    traceparent, "tenant": "größe",
		},
		"HTTP": {
			"ce-specversion": "1.0", "ce-id": "0198c0de-1111-7abc-8def-0123456789ab",
			"ce-type": "order.placed@1", "ce-source": "shop/orders",
			"Content-Type": "application/json", "ce-partitionkey": "a%20b%22%25%C3%BC",
			"ce-time":        "2026-11-30T11:00:00.000005Z",
			"ce-causationid": "0198c0de-2222-7abc-8def-0123456789ab",
			"traceparent":    traceparent, "tenant": "größe",
		},
	} {
		if diff := cmp.Diff(want, encode(t, bindings[name], order())); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAnAttributeThatAnEventHasNotIsNoHeader(t *testing.T) {
	m := &outbox.Message{ID: order().ID, Type: "x", Version: 1}
	want := map[string]string{
		"ce-specversion": "1.0", "ce-id": order().ID.String(), "ce-type": "x@1",
	}
	if diff := cmp.Diff(want, encode(t, nats, m)); diff != "" {
		t.Error(diff)
	}
}

func TestHeadersThatBelongToOthersAreRefused(t *testing.T) {
	for name, binding := range map[string]cloudevents.Binding{
		"ce-id": nats, "CE-extra": nats, "Nats-Rollup": nats, "nats-msg-id": nats,
		"ce_id": kafka, "Content-Type": kafka, "content-type": http,
	} {
		m := order()
		m.Headers = map[string]string{name: "secret"}
		err := binding.Encode(m, func(string, string) {})
		if err == nil || !strings.Contains(err.Error(), name) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	m := order()
	m.Headers = map[string]string{"nats": "1", "ce": "2", "c": "3", "content-types": "4"}
	for name, binding := range bindings {
		if err := binding.Encode(m, func(string, string) {}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNamesOfHeadersCountInAnyCase(t *testing.T) {
	headers := map[string]string{
		"CE-SpecVersion": "1.0", "Ce-Id": `"0198c0de-1111-7abc-8def-0123456789ab"`,
		"ce-type": "order.placed@1", "TraceParent": traceparent, "Nats-Sequence": "7",
		"CE-PARTITIONKEY": `"a \"b\" \\ %c3%a4%41"`, "ce-unknown": "%%%",
	}
	got, err := nats.Decode("orders.placed", maps.All(headers), []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	want := &outbox.Message{
		ID: order().ID, Type: "order.placed", Version: 1, Topic: "orders.placed",
		Key: `a "b" \ äA`, Payload: []byte("{}"),
		Headers: map[string]string{outbox.HeaderTraceparent: traceparent},
	}
	if diff := cmp.Diff(want, got, byFields); diff != "" {
		t.Error(diff)
	}
}

// byFields compares messages by their fields: their own Format hides most of them.
var byFields = cmp.Transformer("fields", func(m outbox.Message) map[string]any {
	headers := m.Headers
	if headers == nil {
		headers = map[string]string{}
	}
	return map[string]any{
		"id": m.ID, "type": m.Type, "version": m.Version, "source": m.Source, "topic": m.Topic,
		"key": m.Key, "payload": string(m.Payload), "content type": m.ContentType,
		"headers": headers, "causation": m.CausationID,
		"time": m.CreatedAt.UTC().Format(time.RFC3339Nano),
	}
})

func TestWhatIsNoEventIsForeign(t *testing.T) {
	for name, change := range map[string]func(map[string]string){
		"no headers":          func(h map[string]string) { clear(h) },
		"another CloudEvent":  func(h map[string]string) { h["ce-type"] = "com.example.created" },
		"a version too large": func(h map[string]string) { h["ce-type"] = "x@4294967297" },
		"another specversion": func(h map[string]string) { h["ce-specversion"] = "2.0" },
		"a type without end": func(h map[string]string) {
			h["ce-type"] = strings.Repeat("x", 1000) + "@1"
		},
		"a type that is not UTF-8": func(h map[string]string) { h["ce-type"] = "%ff@1" },
		"half an escape":           func(h map[string]string) { h["ce-type"] = "x%2@1" },
	} {
		headers := encode(t, nats, order())
		change(headers)
		m, err := nats.Decode("t", maps.All(headers), nil)
		if !errors.Is(err, cloudevents.ErrForeign) || m != nil {
			t.Errorf("%s: got %v, %v, want ErrForeign", name, m, err)
		}
	}
}

func TestAnErrorNamesTheAttributeAndNotItsValue(t *testing.T) {
	for header, values := range map[string][]string{
		"ce-id":              {"secret", ""},
		"ce-partitionkey":    {"secret%2", "secret%C0%A0", "secret\xff"},
		"ce-source":          {"secret%zz"},
		"ce-datacontenttype": {"secret%ff"},
		"ce-time": {
			"secret", "", "2026-11-30", "9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+01:00",
		},
		"ce-causationid": {"secret"},
	} {
		for _, value := range values {
			headers := encode(t, nats, order())
			headers[header] = value
			_, err := nats.Decode("t", maps.All(headers), nil)
			var wrong *cloudevents.AttributeError
			if !errors.As(err, &wrong) || "ce-"+wrong.Attribute != header ||
				strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %q: got %v", header, value, err)
			}
		}
	}
	headers := encode(t, nats, order())
	delete(headers, "ce-id")
	_, err := nats.Decode("t", maps.All(headers), nil)
	if err == nil || err.Error() != "cloudevents: the attribute id is missing" {
		t.Errorf("without an id: got %v", err)
	}
}

// TestAnInvalidHeaderOfAStrangerIsLeftOut: what a handler finds in a message can be passed on with
// what it enqueues.
func TestAnInvalidHeaderOfAStrangerIsLeftOut(t *testing.T) {
	headers := encode(t, nats, order())
	maps.Copy(headers, map[string]string{
		"broken": "a\xff", "huge": strings.Repeat("x", 10_000), "traceparent": "rubbish",
		"tracestate": "a=b",
	})
	m, err := nats.Decode("t", maps.All(headers), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"tenant": "größe"}, m.Headers); diff != "" {
		t.Error(diff)
	}
}

func TestEventsSurviveEveryBinding(t *testing.T) {
	for name, binding := range bindings {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			m := anyMessage(t)
			got, err := binding.Decode(m.Topic, maps.All(encode(t, binding, m)), m.Payload)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(m, got, byFields); diff != "" {
				t.Error(diff)
			}
			if !binding.PercentEncoded {
				return
			}
			for header, value := range encode(t, binding, m) {
				if isPrintable := strings.Trim(value, printable) == ""; !isPrintable &&
					m.Headers[header] == "" && header != binding.ContentType {
					t.Errorf("%s: %q is not printable", header, value)
				}
			}
		}))
	}
}

// printable is what the value of an attribute's header may consist of.
var printable = func() string {
	var b strings.Builder
	for c := byte('!'); c <= '~'; c++ {
		if c != '"' {
			b.WriteByte(c)
		}
	}
	return b.String()
}()

// FuzzDecode holds that no message makes Decode panic, and that what it accepts can be sent on.
func FuzzDecode(f *testing.F) {
	f.Add("order.placed@1", "0198c0de-1111-7abc-8def-0123456789ab", "a%20b", "2026-11-30T11:00:00Z")
	f.Add("x@2147483647", `"0198c0de-1111-7abc-8def-0123456789ab"`, `"\"`, "0000-01-01T00:00:00Z")
	f.Add("x@1", "0198c0de11117abc8def0123456789ab", "%41", "9999-12-31T23:59:59-01:00")
	f.Fuzz(func(t *testing.T, typeName, id, key, created string) {
		for _, binding := range bindings {
			headers := map[string]string{
				binding.Prefix + "specversion": "1.0", binding.Prefix + "type": typeName,
				binding.Prefix + "id": id, binding.Prefix + "partitionkey": key,
				binding.Prefix + "time": created,
			}
			m, err := binding.Decode("t", maps.All(headers), nil)
			if err != nil {
				continue
			}
			again, err := binding.Decode("t", maps.All(encode(t, binding, m)), nil)
			if err != nil {
				t.Fatalf("accepted once, and then %v", err)
			}
			if diff := cmp.Diff(m, again, byFields); diff != "" {
				t.Error(diff)
			}
		}
	})
}

// fataler is a *testing.T or a *rapid.T.
type fataler interface{ Fatal(args ...any) }

func encode(t fataler, b cloudevents.Binding, m *outbox.Message) map[string]string {
	headers := map[string]string{}
	if err := b.Encode(m, func(name, value string) { headers[name] = value }); err != nil {
		t.Fatal(err)
	}
	return headers
}

// anyMessage draws a message that an outbox could have sent.
func anyMessage(t *rapid.T) *outbox.Message {
	text := rapid.StringOf(rapid.Rune())
	id := func(name string) (id outbox.ID) {
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, name))
		return id
	}
	return &outbox.Message{
		ID:      id("id"),
		Type:    rapid.StringMatching(`[a-zäöü][a-z0-9._äöü-]{0,40}`).Draw(t, "type"),
		Version: rapid.Int32Min(1).Draw(t, "version"),
		Source:  text.Draw(t, "source"),
		Topic:   text.Draw(t, "topic"),
		Key:     text.Draw(t, "key"),
		Payload: rapid.SliceOf(rapid.Byte()).Draw(t, "payload"),
		ContentType: rapid.SampledFrom([]string{"", "application/json", "a/b; c=d"}).
			Draw(t, "content type"),
		CausationID: id("causation"),
		CreatedAt:   time.Unix(rapid.Int64Range(0, 250_000_000_000).Draw(t, "time"), 5000),
		Headers: rapid.MapOfN(rapid.StringMatching(`x[a-z-]{0,9}`),
			rapid.StringMatching(`([a-z%"äöü]([ a-z]{0,9}[a-z])?)?`), 0, 3).Draw(t, "headers"),
	}
}
