package payload_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outboxgen/outboxgen/runtime/payload"
)

func TestMarshalWritesTheCataloguesWireFormat(t *testing.T) {
	t.Parallel()
	const want = `{"bool":true,"string":"naïve \"quote\" <b> & \\","int32":-7,"int64":1152921504606846976,"float":0.1,` +
		`"decimal":"-12.50","uuid":"0198c0de-1111-7abc-8def-0123456789ab","time":"2026-11-30T11:00:00.0000005Z",` +
		`"date":"2026-11-30","duration":"PT1H30M0.5S","bytes":"+/8=","json":{"a":[1,null]},"channel":"web","origin":"eu",` +
		`"total":{"amount":1299,"currency":"EUR"},` +
		`"lines":[{"sku":"A-1","count":2,"price":{"amount":500,"currency":"EUR"}}],` +
		`"labels":{"a":"2","m":"3","z":"1"},"matrix":[],"prices":{},"maybe":[],` +
		`"tree":{"name":"","children":[],"by_name":{}},` +
		`"opt_string":"ring twice","opt_uuid":"0198c0de-1111-7abc-8def-0123456789ab"}`
	byValue, err := payload.Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(byValue)); diff != "" {
		t.Error(diff)
	}
	s := sample()
	byPointer, err := payload.Marshal(&s)
	if err != nil || string(byPointer) != want {
		t.Errorf("by pointer: %v, %s", err, byPointer)
	}
}

func TestMarshalRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*rich)
		want   string
	}{
		"NaN": {func(r *rich) { r.Float = math.NaN() },
			"float: not a finite number of 64 bits"},
		"infinity": {func(r *rich) { r.Float = math.Inf(-1) },
			"float: not a finite number of 64 bits"},
		"decimal with exponent": {func(r *rich) { r.Decimal = "1e5" },
			"decimal: not a valid payload.Decimal"},
		"empty decimal": {func(r *rich) { r.Decimal = "" },
			"decimal: not a valid payload.Decimal"},
		"year 10000": {func(r *rich) {
			r.Time = time.Date(9999, 12, 31, 23, 30, 0, 0, time.FixedZone("", -3600))
		}, "time: not an RFC 3339 time in the years 0 to 9999 UTC"},
		"year -1": {func(r *rich) {
			r.Time = time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)
		}, "time: not an RFC 3339 time in the years 0 to 9999 UTC"},
		"30 February": {func(r *rich) {
			r.Date = payload.Date{Year: 2026, Month: 2, Day: 30}
		}, "date: not a day of the form 2006-01-02"},
		"zero date": {func(r *rich) { r.Date = payload.Date{} },
			"date: not a day of the form 2006-01-02"},
		"no JSON": {func(r *rich) { r.JSON = nil }, "json: not valid JSON"},
		"invalid JSON": {func(r *rich) { r.JSON = json.RawMessage(`{"secret"`) },
			"json: not valid JSON"},
		"two JSON values": {func(r *rich) { r.JSON = json.RawMessage(`1 2`) },
			"json: not valid JSON"},
		"JSON not in UTF-8": {func(r *rich) { r.JSON = json.RawMessage("\"\xff\"") },
			"json: not valid UTF-8"},
		"string not in UTF-8": {func(r *rich) { r.String = "secret\xff" },
			"string: not a string in UTF-8"},
		"key not in UTF-8": {func(r *rich) { r.Labels = map[string]string{"secret\xff": ""} },
			"labels: a key is not valid UTF-8"},
		"value not in UTF-8": {func(r *rich) { r.Labels = map[string]string{"secret": "\xff"} },
			"labels[*]: not a string in UTF-8"},
		"undeclared enum value": {func(r *rich) { r.Channel = "secret" },
			"channel: not a valid payload_test.channel"},
		"forgotten, open enum": {func(r *rich) { r.Origin = "" },
			"origin: not a valid payload_test.origin"},
		"empty, open enum": {func(r *rich) { r.OptOrigin = ptr(origin("")) },
			"opt_origin: not a valid payload_test.origin"},
		"open enum not in UTF-8": {func(r *rich) { r.Origin = "secret\xff" },
			"origin: not a valid payload_test.origin"},
		"constraint of a member": {func(r *rich) { r.Total.Currency = "secret" },
			"total.currency: does not match ^[A-Z]{3}$"},
		"constraint in a list": {func(r *rich) {
			r.Lines = append(r.Lines, line{SKU: strings.Repeat("ä", 65)})
		}, "lines[1].sku: more than 64 characters"},
		"constraint in a map": {func(r *rich) {
			r.Prices = map[string][]money{"secret": {{Currency: "secret"}}}
		}, "prices[*][0].currency: does not match ^[A-Z]{3}$"},
		"constraint, optional": {func(r *rich) {
			r.OptTotal = &money{Amount: -1_000_001, Currency: "EUR"}
		}, "opt_total.amount: less than -1000000"},
		"list in a list": {func(r *rich) { r.Maybe = []*string{nil, ptr("\xff")} },
			"maybe[1]: not a string in UTF-8"},
		"cycle": {func(r *rich) { r.Tree.Next = &r.Tree },
			"nested more than 1000 levels deep"},
		"too deep JSON": {func(r *rich) {
			r.JSON = json.RawMessage(strings.Repeat("[", 1000) + strings.Repeat("]", 1000))
		}, "nested more than 1000 levels deep"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := sample()
			c.change(&v)
			out, err := payload.Marshal(&v)
			var e *payload.Error
			if !errors.As(err, &e) || out != nil {
				t.Fatalf("got %s and %v, want a *payload.Error", out, err)
			}
			if !strings.HasSuffix(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestErrorsOfForeignValidatorsAreHidden(t *testing.T) {
	t.Parallel()
	_, err := payload.Marshal(leaky{Email: "ann@example.org"})
	if err == nil || err.Error() != "payload: not valid" {
		t.Errorf("got %v", err)
	}
}

func TestDeepestPayloadThatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	v := sample()
	v.JSON = json.RawMessage(strings.Repeat("[", 999) + strings.Repeat("]", 999))
	out, err := payload.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := payload.Unmarshal(out, &rich{}); err != nil {
		t.Fatal(err)
	}
}

func TestMarshalIsSafeToCallConcurrentlyOnNewTypes(t *testing.T) {
	t.Parallel()
	type fresh struct {
		Nodes []node `json:"nodes"`
	}
	errs := make(chan error, 8)
	for range cap(errs) {
		go func() {
			_, err := payload.Marshal(fresh{Nodes: []node{{Children: []node{{}}}}})
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func TestTypesThatNoCatalogueDeclaresAreRefused(t *testing.T) {
	t.Parallel()
	var nilStruct *money
	for name, v := range map[string]any{
		"nil": nil, "nil pointer": nilStruct, "not a struct": 1, "pointer to a list": &[]int64{1},
		"int": &struct {
			A int `json:"a"`
		}{},
		"string without values": &struct{ A string1 }{},
		"map by number": &struct {
			A map[int64]string `json:"a"`
		}{},
		"in a list": &struct {
			A []chan int `json:"a"`
		}{A: make([]chan int, 1)},
	} {
		if _, err := payload.Marshal(v); err == nil ||
			!strings.HasPrefix(err.Error(), "payload: ") {
			t.Errorf("marshal %s: got %v", name, err)
		}
		if err := payload.Unmarshal([]byte(`{"a":[0],"A":""}`), v); err == nil ||
			!strings.HasPrefix(err.Error(), "payload: ") {
			t.Errorf("unmarshal into %s: got %v", name, err)
		}
	}
	if err := payload.Unmarshal([]byte("{}"), money{}); err == nil {
		t.Error("unmarshal into no pointer: no error")
	}
}

type string1 string

func TestTagsMeanWhatTheyMeanToEncodingJSON(t *testing.T) {
	t.Parallel()
	type tagged struct {
		Plain   int64
		Skipped int64 `json:"-"`
		hidden  int64
		Zero    int64  `json:"zero,omitempty"`
		Null    *int64 `json:"null"`
	}
	v := tagged{Plain: 1, Skipped: 2, hidden: 3}
	out, err := payload.Marshal(v)
	if err != nil || string(out) != `{"Plain":1,"null":null}` {
		t.Fatalf("got %s, %v", out, err)
	}
	var back tagged
	if err := payload.Unmarshal(out, &back); err != nil || back != (tagged{Plain: 1}) {
		t.Errorf("got %+v, %v", back, err)
	}
}

func ptr[T any](x T) *T { return &x }
