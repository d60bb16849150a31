package payload_test

import (
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/outboxgen/outboxgen/runtime/payload"
)

type durations struct {
	D time.Duration `json:"d"`
}

func TestDurationsAreWrittenAsISO8601(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                                 "PT0S",
		1:                                 "PT0.000000001S",
		-5 * time.Second:                  "-PT5S",
		90*time.Minute + time.Second/2:    "PT1H30M0.5S",
		48 * time.Hour:                    "PT48H",
		time.Minute:                       "PT1M",
		time.Hour + 10*time.Second:        "PT1H10S",
		math.MaxInt64:                     "PT2562047H47M16.854775807S",
		math.MinInt64:                     "-PT2562047H47M16.854775808S",
		-100*time.Millisecond - time.Hour: "-PT1H0.1S",
	} {
		out, err := payload.Marshal(durations{d})
		if err != nil || string(out) != `{"d":"`+want+`"}` {
			t.Errorf("%d: got %s, %v, want %s", d, out, err, want)
		}
		var back durations
		if err := payload.Unmarshal(out, &back); err != nil || back.D != d {
			t.Errorf("%s: got %d, %v, want %d", out, back.D, err, d)
		}
	}
}

func TestDurationsAreReadFromISO8601(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]time.Duration{
		"P2DT3H4M5.6S": 2*24*time.Hour + 3*time.Hour + 4*time.Minute + 5600*time.Millisecond,
		"P1D":          24 * time.Hour,
		"+PT1S":        time.Second,
		"-P1DT1S":      -24*time.Hour - time.Second,
		"PT90M":        90 * time.Minute,
		"PT007S":       7 * time.Second,
	} {
		var got durations
		if err := payload.Unmarshal([]byte(`{"d":"`+in+`"}`), &got); err != nil || got.D != want {
			t.Errorf("%s: got %v, %v, want %v", in, got.D, err, want)
		}
	}
	for _, in := range []string{
		"", "P", "PT", "P1DT", "1H", "P1Y", "P1M", "PT1.5H", "PT1.S", "PT.5S", "PT1.1234567890S",
		"PT-1S", "--PT1S", "PT1S1M", "PT1S ",
		"P1H", "PT1D", "P1W", "pt1s", "P999999999D", "PT2562047H47M16.854775808S",
		"-PT2562047H47M16.854775809S",
		"PT99999999999999999999S", "P106752D", "PT1M1M", "1h", "-",
	} {
		if err := payload.Unmarshal([]byte(`{"d":"`+in+`"}`), &durations{}); err == nil {
			t.Errorf("%q was accepted", in)
		}
	}
}

func TestDecimalForm(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"0", "-0", "10", "-12.50", "0.000", strings.Repeat("9", 1000)} {
		if !payload.Decimal(s).Valid() {
			t.Errorf("%q is refused", s)
		}
	}
	for _, s := range []string{"", "-", "+1", "01", "-00", ".5", "5.", "1.2.3", "1e3", "1,5", " 1",
		"--1", "1-", "٣", strings.Repeat("9", 1001)} {
		if payload.Decimal(s).Valid() {
			t.Errorf("%q is accepted", s)
		}
	}
}

func TestDate(t *testing.T) {
	t.Parallel()
	d := payload.DateOf(time.Date(2028, 2, 29, 23, 59, 0, 0, time.FixedZone("", 7200)))
	if d != (payload.Date{Year: 2028, Month: 2, Day: 29}) || d.String() != "2028-02-29" ||
		!d.Valid() {
		t.Errorf("got %v", d)
	}
	if got := d.Time(time.UTC); !got.Equal(time.Date(2028, 2, 29, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("got %v", got)
	}
	for _, s := range []string{"", "2026-2-3", "2026-13-01", "2026-02-29", "02026-01-01",
		"2026-01-01T00:00:00Z", "2026/01/01"} {
		if got, err := payload.ParseDate(s); err == nil {
			t.Errorf("%q: got %v", s, got)
		}
	}
	type days struct{ Day payload.Date }
	out, err := json.Marshal(days{d})
	if err != nil || string(out) != `{"Day":"2028-02-29"}` {
		t.Errorf("got %s, %v", out, err)
	}
	var back days
	if err := json.Unmarshal(out, &back); err != nil || back.Day != d {
		t.Errorf("got %v, %v", back, err)
	}
}

func TestConstraints(t *testing.T) {
	t.Parallel()
	word, seven, half := "äöü", int32(7), 0.5
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"length counts characters": {payload.Length("f", &word, 3, 3), ""},
		"too short": {payload.Length("f", &word, 4, -1),
			"payload: f: fewer than 4 characters"},
		"too long": {payload.Length("f", &word, 0, 2),
			"payload: f: more than 2 characters"},
		"no string": {payload.Length[string]("f", nil, 4, 4), ""},
		"size counts bytes": {payload.Size("f", []byte(word), 7, -1),
			"payload: f: fewer than 7 bytes"},
		"nil bytes are none": {payload.Size("f", nil, 1, -1),
			"payload: f: fewer than 1 bytes"},
		"items":                   {payload.Items("f", 3, 0, 2), "payload: f: more than 2 items"},
		"no limit":                {payload.Items("f", math.MaxInt, 0, -1), ""},
		"pattern is not anchored": {payload.Pattern("f", &word, regexp.MustCompile("ö")), ""},
		"pattern": {payload.Pattern("f", &word, regexp.MustCompile("^ö")),
			"payload: f: does not match ^ö"},
		"no string for the pattern": {payload.Pattern[channel]("f", nil, regexp.MustCompile("a")),
			""},
		"least": {payload.AtLeast("f", &seven, 7), ""},
		"less":  {payload.AtLeast("f", &seven, 8), "payload: f: less than 8"},
		"most":  {payload.AtMost("f", &half, 0.5), ""},
		"more": {payload.AtMost("f", &half, 0.25),
			"payload: f: greater than 0.25"},
		"no number": {payload.Check(payload.AtLeast[int64]("f", nil, 1),
			payload.AtMost[int64]("f", nil, 1)), ""},
		"NaN is in no range": {payload.AtMost("f", ptr(math.NaN()), 1),
			"payload: f: greater than 1"},
		"the first one": {payload.Check(nil, payload.Items("a", 1, 2, 3),
			payload.Items("b", 1, 2, 3)), "payload: a: fewer than 2 items"},
	} {
		got := ""
		if c.err != nil {
			got = c.err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestAForgottenFieldIsNotWritten: the zero UUID and the zero time are what Go has in a field that
// nobody set.
func TestAForgottenFieldIsNotWritten(t *testing.T) {
	t.Parallel()
	type line struct {
		ID uuid.UUID `json:"id"`
	}
	type forgetful struct {
		ID       uuid.UUID            `json:"id"`
		At       time.Time            `json:"at"`
		Line     line                 `json:"line"`
		Lines    []line               `json:"lines"`
		Times    map[string]time.Time `json:"times"`
		Parent   *uuid.UUID           `json:"parent,omitempty"`
		Nullable []*time.Time         `json:"nullable"`
		Deep     map[string][]*line   `json:"deep"`
		Count    int64                `json:"count"`
		Elapsed  time.Duration        `json:"elapsed"`
		Done     bool                 `json:"done"`
	}
	id, at := uuid.New(), time.Unix(0, 0)
	complete := func() forgetful {
		return forgetful{ID: id, At: at, Line: line{id}, Nullable: []*time.Time{nil}}
	}
	if _, err := payload.Marshal(complete()); err != nil {
		t.Fatalf("zero numbers, durations and bools are values: %v", err)
	}
	for want, forget := range map[string]func(*forgetful){
		"id":            func(f *forgetful) { f.ID = uuid.Nil },
		"at":            func(f *forgetful) { f.At = time.Time{} },
		"line.id":       func(f *forgetful) { f.Line.ID = uuid.Nil },
		"lines[1].id":   func(f *forgetful) { f.Lines = []line{{id}, {}} },
		"times[*]":      func(f *forgetful) { f.Times = map[string]time.Time{"secret": {}} },
		"parent":        func(f *forgetful) { f.Parent = new(uuid.UUID) },
		"nullable[0]":   func(f *forgetful) { f.Nullable[0] = new(time.Time) },
		"deep[*][0].id": func(f *forgetful) { f.Deep = map[string][]*line{"secret": {{}}} },
	} {
		f := complete()
		forget(&f)
		_, err := payload.Marshal(f)
		var e *payload.Error
		if !errors.As(err, &e) || e.Path != want || !strings.Contains(e.Problem, "not set") {
			t.Errorf("%s: got error %v", want, err)
		}
	}
	inZone := complete()
	inZone.At = time.Time{}.In(time.FixedZone("elsewhere", 3600))
	if _, err := payload.Marshal(inZone); err == nil {
		t.Error("the zero time of another zone was written")
	}
}

// TestReadersAcceptWhatOthersForgot: an event of another producer, or an older one, is no poison
// message.
func TestReadersAcceptWhatOthersForgot(t *testing.T) {
	t.Parallel()
	var read struct {
		ID uuid.UUID `json:"id"`
		At time.Time `json:"at"`
	}
	data := `{"id":"00000000-0000-0000-0000-000000000000","at":"0001-01-01T00:00:00Z"}`
	if err := payload.Unmarshal([]byte(data), &read); err != nil || read.ID != uuid.Nil ||
		!read.At.IsZero() {
		t.Errorf("got %v and error %v", read, err)
	}
}
