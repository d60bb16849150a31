package events

import (
	"encoding/json"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/payload"
)

func TestEveryTypeSurvivesTheJourney(t *testing.T) {
	t.Parallel()
	checkRoundTrip[ScalarSeenV1](t)
	checkRoundTrip[NestingSeenV1](t)
	checkRoundTrip[PathKeyedV1](t)
}

func checkRoundTrip[E outbox.Event](t *testing.T) {
	t.Helper()
	var e, got E
	fill(reflect.ValueOf(&e).Elem(), 0)
	data, err := payload.Marshal(e)
	if err != nil {
		t.Fatalf("%s: %v", e.EventType(), err)
	}
	if err := payload.Unmarshal(data, &got); err != nil {
		t.Fatalf("%s: %v", e.EventType(), err)
	}
	if !reflect.DeepEqual(got, e) {
		t.Errorf("%s: got %+v, want %+v, from %s", e.EventType(), got, e, data)
	}
}

// fill sets v and all in it to values that differ from zero. Every list and map of optional elements gets a nil one too.
func fill(v reflect.Value, depth int) {
	switch x := v.Addr().Interface().(type) {
	case *Colour:
		*x = ColourGreen
	case *payload.Decimal:
		*x = "-12.50"
	case *payload.Date:
		*x = payload.Date{Year: 2026, Month: time.November, Day: 30}
	case *uuid.UUID:
		*x = uuid.MustParse("0192f0c4-7f3a-7cc1-9a52-3f6f1c2f7a10")
	case *time.Time:
		*x = time.Date(2026, time.November, 30, 23, 59, 59, 123456789, time.UTC)
	case *time.Duration:
		*x = -90*time.Minute + time.Nanosecond
	case *json.RawMessage:
		*x = json.RawMessage(`{"a":[1,null,"x"]}`)
	case *[]byte:
		*x = []byte{0, 255, 10}
	case *string:
		*x = "Grüße, \"世界\"\n\u2028🎉"
	case *bool:
		*x = true
	case *float64:
		*x = 0.1
	default:
		fillContainer(v, depth)
	}
}

func fillContainer(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Int32, reflect.Int64:
		v.SetInt(-1 << (v.Type().Bits() - 1))
	case reflect.Pointer:
		if depth < 8 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), depth+1)
		if v.Type().Elem().Kind() != reflect.Pointer {
			fill(v.Index(1), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		element := reflect.New(v.Type().Elem()).Elem()
		if element.Kind() == reflect.Pointer {
			v.SetMapIndex(reflect.ValueOf("nil"), element)
		}
		fill(element, depth+1)
		v.SetMapIndex(reflect.ValueOf("key "+strconv.Itoa(depth)), element)
	default:
		panic("no value for a " + v.Type().String())
	}
}

func TestWhatIsAbsentIsLeftOut(t *testing.T) {
	t.Parallel()
	data, err := payload.Marshal(NestingSeenV1{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(data), `{"grid":[],"by_name":{},"maybe_rows":[]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestKeysAreText(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]outbox.Event{
		"":                     ScalarSeenV1{StringPlain: "x"},
		"a b":                  TextKeyedV1{ID: "a b"},
		"-7":                   NumberKeyedV1{ID: -7},
		"-9223372036854775808": BigKeyedV1{ID: -1 << 63},
		"2026-11-30":           DayKeyedV1{ID: payload.Date{Year: 2026, Month: 11, Day: 30}},
		"5":                    PathKeyedV1{At: Point{X: 5}},
	} {
		if got := e.EventKey(); got != want {
			t.Errorf("%s: got key %q, want %q", e.EventType(), got, want)
		}
		if ordered := e.EventType().Ordering == outbox.OrderingKey; ordered != (want != "") {
			t.Errorf("%s: ordered by key is %t", e.EventType(), ordered)
		}
	}
}
