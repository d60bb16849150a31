package catalogue

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/source"
)

var (
	integerPattern = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	numberPattern  = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
	spanPattern    = regexp.MustCompile(`^(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?$`)
)

// isInteger reports whether a plain scalar is a whole number in decimal digits, of any size.
func isInteger(v *source.Node) bool {
	return (v.Reading == source.Integer || v.Reading == source.Float) &&
		integerPattern.MatchString(v.Text)
}

func isNumber(v *source.Node) bool {
	return (v.Reading == source.Integer || v.Reading == source.Float) &&
		numberPattern.MatchString(v.Text)
}

func isBool(v *source.Node) bool {
	return v.Reading == source.Bool && (v.Text == "true" || v.Text == "false")
}

func quoted(s string) string { return strconv.Quote(s) }

// text reads prose or a name, without white space around it.
func text(v *source.Node) string { return strings.TrimSpace(v.Text) }

// integer reads a whole number from lowest to highest.
func (d *decoder) integer(p source.Pair, lowest, highest int, into *int) {
	n, err := strconv.Atoi(p.Value.Text)
	if err != nil || n < lowest || n > highest {
		d.add(diag.New(diag.ValueRange, p.Value.Pos, "key %q is from %d to %d, not %s", p.Key.Text,
			lowest, highest, p.Value.Text))
		return
	}
	*into = n
}

// span reads a duration of whole seconds: 0, or days, hours, minutes and seconds such as 1d12h.
func (d *decoder) span(p source.Pair, highest time.Duration, into *time.Duration) {
	v := p.Value
	value, err := parseSpan(v.Text)
	switch {
	case err != nil:
		d.add(diag.New(diag.ValueKind, v.Pos, "%s is not a duration", shown(v)).
			WithHelp("write days, hours, minutes and seconds in this order, such as 72h or " +
				"1d12h, or 0"))
	case value > highest:
		d.add(diag.New(diag.ValueRange, v.Pos, "key %q is at most %s, not %s", p.Key.Text,
			formatDays(highest), v.Text))
	default:
		*into = value
	}
}

func parseSpan(s string) (time.Duration, error) {
	if s == "0" {
		return 0, nil
	}
	m := spanPattern.FindStringSubmatch(s)
	if m == nil || s == "" {
		return 0, fmt.Errorf("%q is not a duration", s)
	}
	total := time.Duration(0)
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if m[i+1] == "" {
			continue
		}
		n, err := strconv.ParseInt(m[i+1], 10, 64)
		if err != nil || n > int64((math.MaxInt64-total)/unit) {
			return math.MaxInt64, nil // more than any limit
		}
		total += time.Duration(n) * unit
	}
	return total, nil
}

func formatDays(d time.Duration) string { return fmt.Sprintf("%dd", int(d.Hours()/24)) }

// choice is a value that a key offers.
type choice struct {
	value  string
	notYet bool
}

// choose reads a value that must be one of those offered.
func (d *decoder) choose(p source.Pair, choices []choice, into *string) {
	for _, c := range choices {
		switch {
		case c.value == p.Value.Text && c.notYet:
			d.add(diag.New(diag.NotSupportedYet, p.Value.Pos, "%s %q is not supported yet",
				p.Key.Text, c.value).
				WithHelp("today it can be %s", offeredNames(choices)))
			return
		case c.value == p.Value.Text:
			*into = c.value
			return
		}
	}
	x := diag.New(diag.ValueUnknown, p.Value.Pos, "unknown %s %q", p.Key.Text, p.Value.Text)
	if near := nearest(p.Value.Text, choiceNames(choices)); near != "" {
		d.add(x.WithHelp("did you mean %q?", near))
		return
	}
	d.add(x.WithHelp("it can be %s", offeredNames(choices)))
}

// offered makes choices of values that can be chosen today.
func offered(values []string) []choice {
	var choices []choice
	for _, v := range values {
		choices = append(choices, choice{value: v})
	}
	return choices
}

func choiceNames(choices []choice) []string {
	var names []string
	for _, c := range choices {
		if !c.notYet {
			names = append(names, c.value)
		}
	}
	return names
}

func offeredNames(choices []choice) string { return strings.Join(choiceNames(choices), " or ") }
