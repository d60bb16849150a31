package payload_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/outboxgen/outboxgen/runtime/payload"
)

// absent draws a pointer that is nil now and then.
func absent[T any](g *rapid.Generator[T]) *rapid.Generator[*T] { return rapid.Ptr(g, true) }

var (
	drawTime = rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(rapid.Int64Range(-62167219200, 253402300799).Draw(t, "unix"),
			rapid.Int64Range(0, 999_999_999).Draw(t, "nanos")).UTC()
	})
	drawDate    = rapid.Map(drawTime, payload.DateOf)
	drawDecimal = rapid.Map(rapid.StringMatching(`-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?`),
		func(s string) payload.Decimal { return payload.Decimal(s) })
	drawUUID = rapid.Custom(func(t *rapid.T) uuid.UUID {
		return uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uuid"))
	})
	drawDuration = rapid.Map(rapid.Int64(), func(n int64) time.Duration { return time.Duration(n) })
	drawBytes    = rapid.SliceOf(rapid.Byte())
	drawFloat    = rapid.Float64Range(-1e300, 1e300)
	drawChannel  = rapid.SampledFrom([]channel{"web", "app", "Läden & <Märkte>"})
	// an open enum
	drawOrigin = rapid.Map(rapid.StringN(1, -1, -1), func(s string) origin { return origin(s) })
	drawMoney  = rapid.Custom(func(t *rapid.T) money {
		return money{Amount: rapid.Int64Min(-1_000_000).Draw(t, "amount"),
			Currency: rapid.StringMatching(`[A-Z]{3}`).Draw(t, "currency")}
	})
	drawLine = rapid.Custom(func(t *rapid.T) line {
		return line{
			SKU:   rapid.StringN(1, 64, -1).Draw(t, "sku"),
			Count: rapid.Int32Range(1, 1000).Draw(t, "count"),
			Price: drawMoney.Draw(t, "price"),
			Attrs: rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "attrs"),
		}
	})
	drawJSON = rapid.Custom(func(t *rapid.T) json.RawMessage {
		raw, err := json.Marshal(rapid.OneOf(
			rapid.Just[any](nil), rapid.String().AsAny(), drawFloat.AsAny(), rapid.Bool().AsAny(),
			rapid.SliceOf(rapid.Int64()).AsAny(),
			rapid.MapOf(rapid.String(), rapid.String()).AsAny(),
		).Draw(t, "json"))
		if err != nil {
			t.Fatal(err)
		}
		return raw
	})
)

// sameJSON takes two ways to write a json value for one.
var sameJSON = cmp.FilterPath(
	func(p cmp.Path) bool { return p.Last().Type() == reflect.TypeFor[json.RawMessage]() },
	cmp.Comparer(func(a, b json.RawMessage) bool {
		var x, y any
		return (a == nil) == (b == nil) &&
			(a == nil || json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil &&
				cmp.Equal(x, y))
	}))

func drawNode(t *rapid.T, depth int) node {
	n := node{Name: rapid.String().Draw(t, "name"), Children: []node{}, ByName: map[string]node{}}
	if depth == 0 {
		return n
	}
	if rapid.Bool().Draw(t, "next") {
		next := drawNode(t, depth-1)
		n.Next = &next
	}
	for range rapid.IntRange(0, 2).Draw(t, "children") {
		n.Children = append(n.Children, drawNode(t, depth-1))
		n.ByName[rapid.String().Draw(t, "key")] = drawNode(t, depth-1)
	}
	return n
}

func drawRich(t *rapid.T) rich {
	r := rich{
		Bool: rapid.Bool().Draw(t, "bool"), String: rapid.String().Draw(t, "string"),
		Int32: rapid.Int32().Draw(t, "int32"), Int64: rapid.Int64().Draw(t, "int64"),
		Float:   rapid.Float64().Draw(t, "float"),
		Decimal: drawDecimal.Draw(t, "decimal"), UUID: drawUUID.Draw(t, "uuid"),
		Time: drawTime.Draw(t, "time"),
		Date: drawDate.Draw(t, "date"), Duration: drawDuration.Draw(t, "duration"),
		Bytes: drawBytes.Draw(t, "bytes"),
		JSON:  drawJSON.Draw(t, "json"), Channel: drawChannel.Draw(t, "channel"),
		Origin: drawOrigin.Draw(t, "origin"),
		Total:  drawMoney.Draw(t, "total"), Lines: rapid.SliceOf(drawLine).Draw(t, "lines"),
		Labels: rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "labels"),
		Matrix: rapid.SliceOf(rapid.SliceOf(rapid.Int64())).Draw(t, "matrix"),
		Prices: rapid.MapOf(rapid.String(), rapid.SliceOf(drawMoney)).Draw(t, "prices"),
		Maybe:  rapid.SliceOf(absent(rapid.String())).Draw(t, "maybe"), Tree: drawNode(t, 3),

		OptBool:     absent(rapid.Bool()).Draw(t, "opt_bool"),
		OptString:   absent(rapid.String()).Draw(t, "opt_string"),
		OptInt32:    absent(rapid.Int32()).Draw(t, "opt_int32"),
		OptInt64:    absent(rapid.Int64()).Draw(t, "opt_int64"),
		OptFloat:    absent(drawFloat).Draw(t, "opt_float"),
		OptDecimal:  absent(drawDecimal).Draw(t, "opt_decimal"),
		OptUUID:     absent(drawUUID).Draw(t, "opt_uuid"),
		OptTime:     absent(drawTime).Draw(t, "opt_time"),
		OptDate:     absent(drawDate).Draw(t, "opt_date"),
		OptDuration: absent(drawDuration).Draw(t, "opt_duration"),
		OptChannel:  absent(drawChannel).Draw(t, "opt_channel"),
		OptOrigin:   absent(drawOrigin).Draw(t, "opt_origin"),
		OptTotal:    absent(drawMoney).Draw(t, "opt_total"),
	}
	if rapid.Bool().Draw(t, "collections") {
		r.OptBytes = drawBytes.Draw(t, "opt_bytes")
		r.OptLines = rapid.SliceOf(drawLine).Draw(t, "opt_lines")
		r.OptLabels = rapid.MapOf(rapid.String(), drawJSON).Draw(t, "opt_labels")
		if raw := drawJSON.Draw(t, "opt_json"); string(raw) != "null" { // which reads as absent
			r.OptJSON = raw
		}
	}
	return r
}

func TestWhatIsWrittenReadsBackTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := drawRich(t)
		out, err := payload.Marshal(&want)
		if err != nil {
			t.Fatal(err)
		}
		again, err := payload.Marshal(want)
		if err != nil || !bytes.Equal(out, again) {
			t.Fatalf("written twice: %v\n%s\n%s", err, out, again)
		}
		var got rich
		if err := payload.Unmarshal(out, &got); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if diff := cmp.Diff(want, got, sameJSON); diff != "" {
			t.Fatalf("%s\n%s", diff, out)
		}
	})
}

// FuzzUnmarshal looks for panics, for input that is accepted and cannot be written again, and for
// values in errors.
func FuzzUnmarshal(f *testing.F) {
	whole, err := payload.Marshal(sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	for _, seed := range []string{
		`{}`, `null`, ` {"bool" : tru}`, `{"string":"\ud83d\ude00 \u0000","lines":[{}]}`,
		`{"string":"\ud83d"}`, `{"x":[[],{}],"bool":1e5}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var v rich
		if err := payload.Unmarshal(data, &v); err != nil {
			var e *payload.Error
			if !errors.As(err, &e) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if !json.Valid(data) {
			t.Fatal("accepted what encoding/json does not")
		}
		out, err := payload.Marshal(&v)
		if err != nil {
			t.Fatalf("read but not written: %v", err)
		}
		if err := payload.Unmarshal(out, &rich{}); err != nil {
			t.Fatalf("written but not read: %s, %v", out, err)
		}
	})
}

// FuzzStrings holds reading and writing of strings against encoding/json.
func FuzzStrings(f *testing.F) {
	for _, seed := range []string{"", "ä\u2028\x7f\x00", `\"`, "\xff", "\U0010ffff"} {
		f.Add(seed)
	}
	type one struct {
		S string `json:"s"`
	}
	f.Fuzz(func(t *testing.T, s string) {
		if out, err := payload.Marshal(one{s}); err == nil {
			var theirs one
			if err := json.Unmarshal(out, &theirs); err != nil || theirs.S != s {
				t.Errorf("%q was written as %s, which encoding/json reads as %q, %v", s, out,
					theirs.S, err)
			}
		}
		escaped := []byte(`{"s":"` + s + `"}`)
		var ours, theirs one
		if payload.Unmarshal(escaped, &ours) != nil {
			return
		}
		if err := json.Unmarshal(escaped, &theirs); err != nil || ours != theirs {
			t.Errorf("%s reads as %q, encoding/json: %q, %v", escaped, ours.S, theirs.S, err)
		}
	})
}
