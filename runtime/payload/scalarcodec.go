package payload

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

var rawType = reflect.TypeFor[json.RawMessage]()

// scalars are the catalogue's built-in types. This is the place to add one.
var scalars = map[reflect.Type]*codec{
	reflect.TypeFor[bool]():          scalar(appendBool, (*decoder).bool),
	reflect.TypeFor[int32]():         scalar(appendInt[int32], decodeInt[int32](32)),
	reflect.TypeFor[int64]():         scalar(appendInt[int64], decodeInt[int64](64)),
	reflect.TypeFor[float64]():       scalar(appendFloat, (*decoder).float),
	reflect.TypeFor[string]():        scalar(appendText, parsed(parseText)),
	reflect.TypeFor[Decimal]():       scalar(quoted(appendDecimal), parsed(parseDecimal)),
	reflect.TypeFor[uuid.UUID]():     scalar(quoted(appendUUID), parsed(parseUUID)),
	reflect.TypeFor[time.Time]():     scalar(quoted(appendTime), parsed(parseTime)),
	reflect.TypeFor[Date]():          scalar(quoted(appendDate), parsed(parseDate)),
	reflect.TypeFor[time.Duration](): scalar(quoted(appendDuration), parsed(parseDuration)),
	reflect.TypeFor[[]byte]():        scalar(quoted(appendBytes), parsed(parseBytes)),
	rawType:                          {encode: encodeRaw, decode: decodeRaw},
}

// scalar makes a codec of functions on values of a known type.
func scalar[T any](write func([]byte, T) ([]byte, error), read func(*decoder) (T, error)) *codec {
	return &codec{
		encode: func(b []byte, v reflect.Value, _ int) ([]byte, error) {
			return write(b, *v.Addr().Interface().(*T))
		},
		decode: func(d *decoder, v reflect.Value) error {
			x, err := read(d)
			if err != nil {
				return err
			}
			*v.Addr().Interface().(*T) = x
			return nil
		},
	}
}

// quoted makes a JSON string of what write appends, which needs no escapes.
func quoted[T any](write func([]byte, T) ([]byte, error)) func([]byte, T) ([]byte, error) {
	return func(b []byte, x T) ([]byte, error) {
		b, err := write(append(b, '"'), x)
		return append(b, '"'), err
	}
}

// parsed reads a JSON string.
func parsed[T any](parse func([]byte) (T, error)) func(*decoder) (T, error) {
	return func(d *decoder) (T, error) {
		text, err := d.text()
		if err != nil {
			var zero T
			return zero, err
		}
		return parse(text)
	}
}

func appendBool(b []byte, x bool) ([]byte, error) { return strconv.AppendBool(b, x), nil }

func (d *decoder) bool() (bool, error) {
	switch c := d.peek(); c {
	case 't', 'f':
		d.value()
		return c == 't', nil
	default:
		return false, problem("not true or false")
	}
}

func appendInt[T int32 | int64](b []byte, x T) ([]byte, error) {
	return strconv.AppendInt(b, int64(x), 10), nil
}

// decodeInt refuses a fraction and an exponent, also where the number is whole.
func decodeInt[T int32 | int64](bits int) func(*decoder) (T, error) {
	return func(d *decoder) (T, error) {
		text, err := d.number()
		if err != nil {
			return 0, err
		}
		if bytes.ContainsAny(text, ".eE") {
			return 0, problem("not an integer")
		}
		n, err := strconv.ParseInt(string(text), 10, bits)
		if err != nil {
			return 0, problem(fmt.Sprintf("out of range for an int%d", bits))
		}
		return T(n), nil
	}
}

// appendFloat writes the shortest form that reads back the same, with an exponent where ECMAScript has one.
func appendFloat(b []byte, x float64) ([]byte, error) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return b, problem("not a finite number")
	}
	if size := math.Abs(x); size != 0 && (size < 1e-6 || size >= 1e21) {
		return strconv.AppendFloat(b, x, 'e', -1, 64), nil
	}
	return strconv.AppendFloat(b, x, 'f', -1, 64), nil
}

func (d *decoder) float() (float64, error) {
	text, err := d.number()
	if err != nil {
		return 0, err
	}
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return 0, problem("out of range for a float64")
	}
	return x, nil
}

func appendText(b []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return b, problem("not valid UTF-8")
	}
	return appendString(b, s), nil
}

func parseText(text []byte) (string, error) { return string(text), nil }

// appendString writes a JSON string with the escapes that RFC 8259, 7 asks for.
func appendString(b []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		if short := strings.IndexByte("\"\\\b\f\n\r\t", c); short >= 0 {
			b = append(b, '\\', `"\bfnrt`[short])
		} else {
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(b, s[start:]...), '"')
}

var errDecimal = problem(fmt.Sprintf("not a decimal number of at most %d characters", MaxDecimal))

func appendDecimal(b []byte, d Decimal) ([]byte, error) {
	if !d.Valid() {
		return b, errDecimal
	}
	return append(b, d...), nil
}

func parseDecimal(text []byte) (Decimal, error) {
	d := Decimal(text)
	if !d.Valid() {
		return "", errDecimal
	}
	return d, nil
}

func appendUUID(b []byte, id uuid.UUID) ([]byte, error) {
	b = hex.AppendEncode(b, id[:4])
	for i := 4; i < 10; i += 2 {
		b = hex.AppendEncode(append(b, '-'), id[i:i+2])
	}
	return hex.AppendEncode(append(b, '-'), id[10:]), nil
}

// parseUUID takes the form of RFC 9562, 4 only, in either case.
func parseUUID(text []byte) (uuid.UUID, error) {
	id, err := uuid.ParseBytes(text)
	if err != nil || len(text) != 36 {
		return uuid.Nil, problem("not a UUID")
	}
	return id, nil
}

var errTime = problem("not an RFC 3339 time in the years 0 to 9999 UTC")

func appendTime(b []byte, t time.Time) ([]byte, error) {
	t = t.UTC()
	if year := t.Year(); year < 0 || year > 9999 {
		return b, errTime
	}
	return t.AppendFormat(b, time.RFC3339Nano), nil
}

func parseTime(text []byte) (time.Time, error) {
	var t time.Time
	if err := t.UnmarshalText(text); err != nil {
		return time.Time{}, errTime
	}
	t = t.UTC()
	if year := t.Year(); year < 0 || year > 9999 {
		return time.Time{}, errTime
	}
	return t, nil
}

func appendDate(b []byte, d Date) ([]byte, error) {
	text, err := d.MarshalText()
	return append(b, text...), err
}

func parseDate(text []byte) (Date, error) { return ParseDate(string(text)) }

func appendBytes(b []byte, x []byte) ([]byte, error) {
	return base64.StdEncoding.AppendEncode(b, x), nil
}

func parseBytes(text []byte) ([]byte, error) {
	out := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(out, text)
	if err != nil {
		return nil, problem("not base64")
	}
	return out[:n], nil
}

// encodeRaw writes any JSON value, compact. Nil is none.
func encodeRaw(b []byte, v reflect.Value, depth int) ([]byte, error) {
	raw := v.Bytes()
	if raw == nil {
		return b, problem("missing")
	}
	if err := wellFormed(raw, maxDepth-depth+1); err != nil {
		return b, err
	}
	buf := bytes.NewBuffer(b)
	if err := json.Compact(buf, raw); err != nil {
		return b, problem("not valid JSON")
	}
	return buf.Bytes(), nil
}

// decodeRaw keeps the value as it stands, white space included.
func decodeRaw(d *decoder, v reflect.Value) error {
	v.SetBytes(bytes.Clone(d.value()))
	return nil
}

// enum is what generated enums implement.
type enum interface{ Valid() bool }

// enumCodec writes declared values only, also of an open enum: readers are open, writers are not.
func enumCodec(t reflect.Type) *codec {
	_, open := reflect.New(t).Interface().(interface{ OpenEnum() })
	undeclared := problem("not a value of the enum")
	return &codec{
		encode: func(b []byte, v reflect.Value, _ int) ([]byte, error) {
			if !v.Addr().Interface().(enum).Valid() {
				return b, undeclared
			}
			return appendText(b, v.String())
		},
		decode: func(d *decoder, v reflect.Value) error {
			text, err := d.text()
			if err != nil {
				return err
			}
			v.SetString(string(text))
			if !open && !v.Addr().Interface().(enum).Valid() {
				return undeclared
			}
			return nil
		},
	}
}
