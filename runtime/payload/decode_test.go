package payload_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outboxgen/outboxgen/runtime/payload"
)

type small struct {
	I32    int32             `json:"i32"`
	I64    *int64            `json:"i64,omitempty"`
	F      *float64          `json:"f,omitempty"`
	S      *string           `json:"s,omitempty"`
	B      *bool             `json:"b,omitempty"`
	D      *payload.Decimal  `json:"d,omitempty"`
	T      *time.Time        `json:"t,omitempty"`
	Day    *payload.Date     `json:"day,omitempty"`
	Bytes  []byte            `json:"bytes,omitempty"`
	Raw    json.RawMessage   `json:"raw,omitempty"`
	Ch     *channel          `json:"ch,omitempty"`
	Or     *origin           `json:"or,omitempty"`
	Line   *line             `json:"line,omitempty"`
	Lines  []line            `json:"lines,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Maybe  []*string         `json:"maybe,omitempty"`
}

func TestUnmarshalIsOpenToWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]small{
		`{"i32":1,"new":{"deep":["}",{"\"":1}]},"I32":"other case"}`: {I32: 1},
		" \n{ \"i32\" : 1 , \"s\" : null } \t":                       {I32: 1},
		`{"i32":1,"or":"mars","ch":"app"}`: {I32: 1,
			Or: ptr(origin("mars")), Ch: ptr(channel("app"))},
		`{"\u0069\u0033\u0032":-2147483648}`:   {I32: -2147483648},
		`{"i32":-0,"i64":9223372036854775807}`: {I64: ptr(int64(9223372036854775807))},
		`{"i32":1,"f":1E2,"b":false}`: {I32: 1, F: ptr(100.0),
			B: ptr(false)},
		`{"i32":1,"s":"\ud83d\ude00\u00e4\/\b\f\n\r\t\"\\\u0000"}`: {I32: 1,
			S: ptr("😀ä/\b\f\n\r\t\"\\\x00")},
		`{"i32":1,"t":"2026-11-30T13:00:00+02:00"}`: {I32: 1,
			T: ptr(time.Date(2026, 11, 30, 11, 0, 0, 0, time.UTC))},
		`{"i32":1,"raw":null}`: {I32: 1},
		`{"i32":1,"raw":[1, 2]}`: {I32: 1,
			Raw: json.RawMessage(`[1,2]`)},
		`{"i32":1,"raw":{"b":1e400,"a":"\u0026<"}}`: {I32: 1,
			Raw: json.RawMessage(`{"a":"&<","b":1e400}`)},
		`{"i32":2,"i32":1,"labels":{"a":"1","a":"2"}}`: {I32: 1,
			Labels: map[string]string{"a": "2"}},
		`{"i32":1,"s":"half \ud83d"}`: {I32: 1,
			S: ptr("half \ufffd")},
		`{"i32":1,"lines":[],"labels":{},"bytes":"","maybe":[null]}`: {I32: 1, Lines: []line{},
			Labels: map[string]string{}, Bytes: []byte{}, Maybe: []*string{nil}},
	} {
		got := small{I32: 99, S: ptr("left over"), Lines: []line{{}}}
		if err := payload.Unmarshal([]byte(in), &got); err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	t.Parallel()
	const aLine = `{"sku":"secret","count":1,"price":{"amount":1,"currency":"EUR"}}`
	for in, want := range map[string]string{
		``:                       "not valid JSON",
		`{"i32":1}{}`:            "not valid JSON",
		`{"i32":1} x`:            "not valid JSON",
		`{"i32":01}`:             "not valid JSON",
		"{\"i32\":1,\"\xff\":1}": "not valid UTF-8",
		`{"new":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) +
			`}`: "not valid JSON",
		strings.Repeat("[", 20000):             "not valid JSON",
		`[]`:                                   "not an object",
		`null`:                                 "not an object",
		`"secret"`:                             "not an object",
		`{}`:                                   "i32: missing",
		`{"I32":1}`:                            "i32: missing",
		`{"i32":null}`:                         "i32: not an integer of 32 bits",
		`{"i32":1.0}`:                          "i32: not an integer of 32 bits",
		`{"i32":1e0}`:                          "i32: not an integer of 32 bits",
		`{"i32":2147483648}`:                   "i32: not an integer of 32 bits",
		`{"i32":1,"i64":-9223372036854775809}`: "i64: not an integer of 64 bits",
		`{"i32":"1"}`:                          "i32: not an integer of 32 bits",
		`{"i32":[1]}`:                          "i32: not an integer of 32 bits",
		`{"i32":1,"f":1e999}`:                  "f: not a finite number of 64 bits",
		`{"i32":1,"f":"1"}`:                    "f: not a finite number of 64 bits",
		`{"i32":1,"b":"true"}`:                 "b: not true or false",
		`{"i32":1,"b":1}`:                      "b: not true or false",
		`{"i32":1,"s":5}`:                      "s: not a string in UTF-8",
		`{"i32":1,"d":1.5}`:                    "d: not a valid payload.Decimal",
		`{"i32":1,"d":"1."}`:                   "d: not a valid payload.Decimal",
		`{"i32":1,"t":"2026-11-30"}`: "t: not an RFC 3339 time in the years 0 to 9999 " +
			"UTC",
		`{"i32":1,"t":"0000-01-01T00:00:00+01:00"}`: "t: not an RFC 3339 time in the years 0 to " +
			"9999 UTC",
		`{"i32":1,"day":"2026-02-29"}`:      "day: not a day of the form 2006-01-02",
		`{"i32":1,"bytes":"secret"}`:        "bytes: not base64",
		`{"i32":1,"ch":"secret"}`:           "ch: not a valid payload_test.channel",
		`{"i32":1,"or":""}`:                 "or: not a valid payload_test.origin",
		`{"i32":1,"or":1}`:                  "or: not a valid payload_test.origin",
		`{"i32":1,"lines":{}}`:              "lines: not a list",
		`{"i32":1,"lines":[null]}`:          "lines[0]: not an object",
		`{"i32":1,"line":{"sku":"secret"}}`: "line.count: missing",
		`{"i32":1,"lines":[` + aLine +
			`,{"sku":"","count":1,"price":{"amount":1,"currency":"EUR"}}]}`: "lines[1].sku: " +
			"fewer than 1 characters",
		`{"i32":1,"line":{"sku":"a","count":1,"price":{"amount":1,"currency":"secret"}}}`: "line.price.currency: does not match ^[A-Z]{3}$",
		`{"i32":1,"labels":[]}`:              "labels: not an object",
		`{"i32":1,"labels":{"secret":1}}`:    "labels[*]: not a string in UTF-8",
		`{"i32":1,"labels":{"secret":null}}`: "labels[*]: not a string in UTF-8",
	} {
		got := small{I32: 99}
		err := payload.Unmarshal([]byte(in), &got)
		var e *payload.Error
		if !errors.As(err, &e) || err.Error() != "payload: "+want {
			t.Errorf("%.80s: got %v, want %s", in, err, want)
		}
		if !reflect.ValueOf(got).IsZero() {
			t.Errorf("%.80s: left %+v behind", in, got)
		}
	}
}
