package payload

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// scalars has the codecs of the catalogue's built-in types, except json. A codec is made of a
// description for errors, a check (nil if all values are valid), a writer and a reader. A string
// type with a method Valid, as Decimal is, needs no entry: codecOf treats it as an enum.
var scalars = map[reflect.Type]codec{
	reflect.TypeFor[bool](): plain("true or false", nil, strconv.AppendBool, same[bool]),
	reflect.TypeFor[int32](): plain("an integer of 32 bits", nil, appendInt[int32],
		parseInt[int32]),
	reflect.TypeFor[int64](): plain("an integer of 64 bits", nil, appendInt[int64],
		parseInt[int64]),
	reflect.TypeFor[float64](): plain("a finite number of 64 bits", finite, appendFloat,
		json.Number.Float64),
	reflect.TypeFor[json.Number](): plain("a number", nil, appendText[json.Number],
		same[json.Number]),
	reflect.TypeFor[string](): plain("a string in UTF-8", utf8.ValidString, appendQuoted,
		same[string]),
	reflect.TypeFor[uuid.UUID](): filled("the zero UUID",
		quoted("a UUID", nil, appendUUID, parseUUID)),
	reflect.TypeFor[time.Time](): filled("the zero time",
		quoted("an RFC 3339 time in the years 0 to 9999 UTC", fourDigits, appendTime, parseTime)),
	reflect.TypeFor[Date](): quoted("a day of the form 2006-01-02", Date.Valid,
		appendText[Date], ParseDate),
	reflect.TypeFor[time.Duration](): quoted("an ISO 8601 duration in 64 bits of nanoseconds", nil,
		appendDuration, parseDuration),
	reflect.TypeFor[[]byte](): quoted("base64", nil, base64.StdEncoding.AppendEncode,
		base64.StdEncoding.DecodeString),
}

var rawType = reflect.TypeFor[json.RawMessage]() // of the catalogue's json

// plain returns a codec for a Go type T that is a J in JSON. Its only error says that a value is
// not a noun.
func plain[T any, J bool | json.Number | string](
	noun string, valid func(T) bool, write func([]byte, T) []byte, read func(J) (T, error),
) codec {
	isNot := problem("not " + noun)
	encode := func(b []byte, v reflect.Value, _ int) ([]byte, error) {
		x := v.Addr().Interface().(*T)
		if valid != nil && !valid(*x) {
			return nil, isNot
		}
		return write(b, *x), nil
	}
	decode := func(tree any, v reflect.Value) error {
		j, ok := tree.(J)
		if !ok {
			return isNot
		}
		x, err := read(j)
		if err != nil || valid != nil && !valid(x) {
			return isNot
		}
		*v.Addr().Interface().(*T) = x
		return nil
	}
	return codec{encode, decode}
}

// quoted returns a codec for values that are strings in JSON without escapes.
func quoted[T any](
	noun string, valid func(T) bool, write func([]byte, T) []byte, read func(string) (T, error),
) codec {
	inQuotes := func(b []byte, x T) []byte { return append(write(append(b, '"'), x), '"') }
	return plain(noun, valid, inQuotes, read)
}

// filled returns a codec that refuses to write a zero value of c, since the field was probably
// forgotten. It reads zero values, so that events of other or older producers do not become poison
// messages.
func filled(zero string, c codec) codec {
	encode := c.encode
	isZero := problem("is " + zero +
		", so it was not set; leave out an optional field (with ? behind its type) for none")
	c.encode = func(b []byte, v reflect.Value, depth int) ([]byte, error) {
		t, isTime := v.Addr().Interface().(*time.Time)
		if v.IsZero() || isTime && t.IsZero() {
			return nil, isZero
		}
		return encode(b, v, depth)
	}
	return c
}

func appendText[T fmt.Stringer](b []byte, x T) []byte { return append(b, x.String()...) }

// appendUUID writes what String returns, without making a string of it.
func appendUUID(b []byte, x uuid.UUID) []byte {
	b = append(hex.AppendEncode(b, x[:4]), '-')
	b = append(hex.AppendEncode(b, x[4:6]), '-')
	b = append(hex.AppendEncode(b, x[6:8]), '-')
	b = append(hex.AppendEncode(b, x[8:10]), '-')
	return hex.AppendEncode(b, x[10:])
}

func same[T any](x T) (T, error) { return x, nil }

func appendInt[T int32 | int64](b []byte, x T) []byte { return strconv.AppendInt(b, int64(x), 10) }

// parseInt refuses a fraction or an exponent, even if the number is whole.
func parseInt[T int32 | int64](number json.Number) (T, error) {
	n, err := strconv.ParseInt(string(number), 10, reflect.TypeFor[T]().Bits())
	return T(n), err
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// appendFloat writes the shortest form that reads back the same, with an exponent if ECMAScript
// has one.
func appendFloat(b []byte, x float64) []byte {
	if size := math.Abs(x); size != 0 && (size < 1e-6 || size >= 1e21) {
		return strconv.AppendFloat(b, x, 'e', -1, 64)
	}
	return strconv.AppendFloat(b, x, 'f', -1, 64)
}

// appendQuoted makes a JSON string of s with the escapes that RFC 8259, 7 asks for, and no others.
func appendQuoted(b []byte, s string) []byte {
	b, start := append(b, '"'), 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		if c < ' ' {
			b = fmt.Appendf(b, `\u%04x`, c)
		} else {
			b = append(b, '\\', c)
		}
	}
	return append(append(b, s[start:]...), '"')
}

// parseUUID reads only the form of RFC 9562, section 4, in upper or lower case.
func parseUUID(text string) (uuid.UUID, error) {
	if len(text) != 36 {
		return uuid.Nil, problem("not a UUID")
	}
	return uuid.Parse(text)
}

func fourDigits(t time.Time) bool { return t.UTC().Year() >= 0 && t.UTC().Year() <= 9999 }

func appendTime(b []byte, t time.Time) []byte { return t.UTC().AppendFormat(b, time.RFC3339Nano) }

func parseTime(text string) (t time.Time, err error) {
	err = t.UnmarshalText([]byte(text))
	return t.UTC(), err
}

// Decimal is an exact decimal number as text, such as -12.50. Trailing zeros are kept.
type Decimal string

// Valid reports whether d is at most 1000 characters: digits without leading zeros and with an
// optional fraction, but no exponent.
func (d Decimal) Valid() bool {
	whole, fraction, dotted := strings.Cut(strings.TrimPrefix(string(d), "-"), ".")
	return len(d) <= 1000 && digits(whole) && (whole == "0" || whole[0] != '0') &&
		(!dotted || digits(fraction))
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// Date is a calendar day without time and zone, in the years 0 to 9999. Its text form is 2026-11-30
// (RFC 3339, full-date).
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// DateOf returns the day of t in the zone of t.
func DateOf(t time.Time) (d Date) {
	d.Year, d.Month, d.Day = t.Date()
	return d
}

// ParseDate reads a day of the form 2026-11-30.
func ParseDate(s string) (Date, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return Date{}, problem("not a date of the form 2006-01-02")
	}
	return DateOf(t), nil
}

// Time returns the time at which d begins in loc.
func (d Date) Time(loc *time.Location) time.Time {
	return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, loc)
}

// Valid reports whether the day exists, in the years 0 to 9999.
func (d Date) Valid() bool { return fourDigits(d.Time(time.UTC)) && DateOf(d.Time(time.UTC)) == d }

// String returns d in the form 2026-11-30.
func (d Date) String() string { return fmt.Sprintf("%04d-%02d-%02d", d.Year, int(d.Month), d.Day) }

// MarshalText returns what String returns, and refuses an invalid day.
func (d Date) MarshalText() ([]byte, error) {
	if !d.Valid() {
		return nil, problem("not a day of the calendar in the years 0 to 9999")
	}
	return []byte(d.String()), nil
}

// UnmarshalText reads what MarshalText writes.
func (d *Date) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDate(string(text))
	return err
}

// appendDuration writes hours, minutes and seconds without those that are zero: PT1H30M0.5S, -PT5S,
// PT0S.
func appendDuration(b []byte, d time.Duration) []byte {
	rest := uint64(d)
	if d < 0 {
		b = append(b, '-')
		rest = -rest
	}
	b = append(b, "PT"...)
	if hours := rest / uint64(time.Hour); hours > 0 {
		b = fmt.Appendf(b, "%dH", hours)
	}
	if minutes := rest / uint64(time.Minute) % 60; minutes > 0 {
		b = fmt.Appendf(b, "%dM", minutes)
	}
	// at most eleven digits, which a float64 keeps
	if rest %= uint64(time.Minute); rest > 0 || d == 0 {
		b = append(strconv.AppendFloat(b, float64(rest)/1e9, 'f', -1, 64), 'S')
	}
	return b
}

// isoDuration is ISO 8601 without years, months and weeks. A day is 24 hours.
var isoDuration = regexp.MustCompile(`^([+-]?)P(?:(\d{1,9})D)?(T(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d{1,9})?S)?)?$`)

// parseDuration leaves the arithmetic and its limits to time.ParseDuration.
func parseDuration(text string) (time.Duration, error) {
	m := isoDuration.FindStringSubmatch(text)
	if m == nil || strings.HasSuffix(text, "T") {
		return 0, problem("not an ISO 8601 duration")
	}
	if days, err := strconv.Atoi(m[2]); err == nil {
		m[2] = strconv.Itoa(24*days) + "h"
	}
	return time.ParseDuration(m[1] + m[2] + strings.ToLower(strings.TrimPrefix(m[3], "T")))
}
