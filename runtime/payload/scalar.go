package payload

import (
	"fmt"
	"strings"
	"time"
)

// Decimal is an exact decimal number as text, such as -12.50: digits without leading zeros, an optional fraction, no exponent, at
// most MaxDecimal characters. Trailing zeros are kept.
type Decimal string

// MaxDecimal is the greatest length of a Decimal in characters.
const MaxDecimal = 1000

// Valid says whether d has the form of a decimal number.
func (d Decimal) Valid() bool {
	whole, fraction, dotted := strings.Cut(strings.TrimPrefix(string(d), "-"), ".")
	return len(d) <= MaxDecimal && digits(whole) && (whole == "0" || whole[0] != '0') && (!dotted || digits(fraction))
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// Date is a day of the calendar, without time and zone. Its text is 2026-11-30 (RFC 3339, full-date), its years 0 to 9999.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// DateOf returns the day of t in the zone of t.
func DateOf(t time.Time) Date {
	year, month, day := t.Date()
	return Date{Year: year, Month: month, Day: day}
}

// ParseDate reads a day of the form 2026-11-30.
func ParseDate(s string) (Date, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil || len(s) != len(time.DateOnly) {
		return Date{}, problem("not a date of the form 2006-01-02")
	}
	return DateOf(t), nil
}

// Time returns the instant at which d begins in loc.
func (d Date) Time(loc *time.Location) time.Time {
	return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, loc)
}

// Valid says whether the calendar has such a day, in the years 0 to 9999.
func (d Date) Valid() bool {
	return d.Year >= 0 && d.Year <= 9999 && DateOf(d.Time(time.UTC)) == d
}

// String returns d in the form 2026-11-30.
func (d Date) String() string { return fmt.Sprintf("%04d-%02d-%02d", d.Year, int(d.Month), d.Day) }

// MarshalText returns what String returns, and refuses what is no day.
func (d Date) MarshalText() ([]byte, error) {
	if !d.Valid() {
		return nil, problem("not a day of the calendar in the years 0 to 9999")
	}
	return []byte(d.String()), nil
}

// UnmarshalText reads what MarshalText writes.
func (d *Date) UnmarshalText(text []byte) error {
	var err error
	*d, err = ParseDate(string(text))
	return err
}
