package payload_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
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
		"NaN":                    {func(r *rich) { r.Float = math.NaN() }, "float: not a finite number"},
		"infinity":               {func(r *rich) { r.Float = math.Inf(-1) }, "float: not a finite number"},
		"decimal with exponent":  {func(r *rich) { r.Decimal = "1e5" }, "decimal: not a decimal number of at most 1000 characters"},
		"empty decimal":          {func(r *rich) { r.Decimal = "" }, "decimal: not a decimal number of at most 1000 characters"},
		"year 10000":             {func(r *rich) { r.Time = time.Date(9999, 12, 31, 23, 30, 0, 0, time.FixedZone("", -3600)) }, "time: not an RFC 3339 time in the years 0 to 9999 UTC"},
		"year -1":                {func(r *rich) { r.Time = time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC) }, "time: not an RFC 3339 time in the years 0 to 9999 UTC"},
		"30 February":            {func(r *rich) { r.Date = payload.Date{Year: 2026, Month: 2, Day: 30} }, "date: not a day of the calendar in the years 0 to 9999"},
		"zero date":              {func(r *rich) { r.Date = payload.Date{} }, "date: not a day of the calendar in the years 0 to 9999"},
		"no JSON":                {func(r *rich) { r.JSON = nil }, "json: missing"},
		"invalid JSON":           {func(r *rich) { r.JSON = json.RawMessage(`{"secret"`) }, "json: not valid JSON"},
		"two JSON values":        {func(r *rich) { r.JSON = json.RawMessage(`1 2`) }, "json: not valid JSON"},
		"JSON not in UTF-8":      {func(r *rich) { r.JSON = json.RawMessage("\"\xff\"") }, "json: not valid UTF-8"},
		"string not in UTF-8":    {func(r *rich) { r.String = "secret\xff" }, "string: not valid UTF-8"},
		"key not in UTF-8":       {func(r *rich) { r.Labels = map[string]string{"secret\xff": ""} }, "labels: a key is not valid UTF-8"},
		"value not in UTF-8":     {func(r *rich) { r.Labels = map[string]string{"secret": "\xff"} }, "labels[*]: not valid UTF-8"},
		"undeclared enum value":  {func(r *rich) { r.Channel = "secret" }, "channel: not a value of the enum"},
		"undeclared, open enum":  {func(r *rich) { r.Origin = "secret" }, "origin: not a value of the enum"},
		"constraint of a member": {func(r *rich) { r.Total.Currency = "secret" }, "total.currency: does not match ^[A-Z]{3}$"},
		"constraint in a list":   {func(r *rich) { r.Lines = append(r.Lines, line{SKU: strings.Repeat("ä", 65)}) }, "lines[1].sku: more than 64 characters"},
		"constraint in a map":    {func(r *rich) { r.Prices = map[string][]money{"secret": {{Currency: "secret"}}} }, "prices[*][0].currency: does not match ^[A-Z]{3}$"},
		"constraint, optional":   {func(r *rich) { r.OptTotal = &money{Amount: -1_000_001, Currency: "EUR"} }, "opt_total.amount: less than -1000000"},
		"list in a list":         {func(r *rich) { r.Maybe = []*string{nil, ptr("\xff")} }, "maybe[1]: not valid UTF-8"},
		"cycle":                  {func(r *rich) { r.Tree.Next = &r.Tree }, "nested more than 1000 levels deep"},
		"too deep JSON":          {func(r *rich) { r.JSON = json.RawMessage(strings.Repeat("[", 1000) + strings.Repeat("]", 1000)) }, "json: nested more than 1000 levels deep"},
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
		"int": struct {
			A int `json:"a"`
		}{},
		"no tag":     struct{ A int64 }{},
		"unexported": struct{ a int64 }{},
		"omitempty without a pointer": struct {
			A int64 `json:"a,omitempty"`
		}{},
		"pointer without omitempty": struct {
			A *int64 `json:"a"`
		}{},
		"map by number": struct {
			A map[int64]string `json:"a"`
		}{},
		"interface": struct {
			A any `json:"a"`
		}{},
		"the same name twice": reflect.New(reflect.StructOf([]reflect.StructField{
			{Name: "A", Type: reflect.TypeFor[bool](), Tag: `json:"a"`},
			{Name: "B", Type: reflect.TypeFor[bool](), Tag: `json:"a"`},
		})).Interface(),
		"other option": struct {
			A int64 `json:"a,string"`
		}{},
		"in a list": struct {
			A []chan int `json:"a"`
		}{},
	} {
		if _, err := payload.Marshal(v); err == nil || !strings.HasPrefix(err.Error(), "payload: ") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for name, v := range map[string]any{"nil": nil, "nil pointer": nilStruct, "no pointer": money{}, "pointer to int": new(int)} {
		if err := payload.Unmarshal([]byte("{}"), v); err == nil || !strings.HasPrefix(err.Error(), "payload: ") {
			t.Errorf("unmarshal into %s: got %v", name, err)
		}
	}
}

func ptr[T any](x T) *T { return &x }
