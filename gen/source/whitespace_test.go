package source_test

import (
	"fmt"
	"testing"

	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/source"
)

// wantOnly loads a file and expects one diagnostic of a rule at a place, and no file.
func wantOnly(t *testing.T, data, rule, place string) {
	t.Helper()
	file, list := source.Load("x.yaml", []byte(data))
	if file != nil || len(list) != 1 {
		t.Errorf("%q: got a file: %t, and\n%swant one diagnostic", data, file != nil, summary(list))
		return
	}
	d := list[0]
	if at := fmt.Sprintf("%d:%d-%d", d.Pos.Line, d.Pos.Column, d.Pos.End); d.Rule != rule ||
		at != place {
		t.Errorf("%q: got %s at %s, want %s at %s", data, d.Rule, at, rule, place)
	}
}

// A line of nothing but white space is an error to the YAML reader if there is a tab in it, almost
// anywhere.
func TestATabOnABlankLineIsNamed(t *testing.T) {
	t.Parallel()
	for data, place := range map[string]string{
		"\t":                             "1:1-2",
		"\t\na: 1\n":                     "1:1-2",
		"\t\na: 1\n\tb: 2\n":             "1:1-2",
		"# comment\n  \t\na: 1\n":        "2:3-4",
		"a: 1\n\t\nb: 2\n":               "2:1-2",
		"a: 1\r\n\t\r\nb: 2\r\n":         "2:1-2",
		"a:\n\t\n  b: 2\n":               "2:1-2",
		"a:\n  b: 2\n  \t \n  c: 1\n":    "3:3-4",
		"a:\n- b\n\t\n- c\n":             "3:1-2",
		"a: {b: c}\n \t\nd: e\n":         "2:2-3",
		"a: |\n  text\n\t\n  more\nb: 1": "3:1-2",
		"a: 1\n\t":                       "2:1-2",
		"-\ta\n":                         "1:2-3",
		"a: 1\n- \tb\n":                  "2:3-4",
	} {
		wantOnly(t, data, diag.YAMLTab, place)
	}
}

// Spaces of other kinds are text to YAML: they make a key of another name, or none.
func TestWhatLooksLikeASpaceIsNamed(t *testing.T) {
	t.Parallel()
	for _, space := range []string{
		"\u00a0", "\u00ad", "\u034f", "\u115f", "\u1680", "\u180e", "\u2003", "\u200b", "\u200d",
		"\u202f",
		"\u205f", "\u2060", "\u2800", "\u3000", "\u3164",
	} {
		for data, place := range map[string]string{
			space + "\na: 1\n":                         "1:1-2",
			space + "a: 1\n":                           "1:1-2",
			"a: 1\n" + space + "b: 2\n":                "2:1-2",
			"a:\n " + space + "b: 2\n":                 "2:2-3",
			"a:\n  b: 1\n" + space + " c: 1\n":         "3:1-2",
			"a: 1\n" + space + "\nb: 2\n":              "2:1-2",
			"a: text\n" + space + space + "b: c\n":     "2:1-2",
			"a: {\n" + space + "b: c}\n":               "2:1-2",
			"a: |\n  text\n" + space + " more\nb: 1\n": "3:1-2",
			"a:" + space + "b\nc: d\n":                 "1:3-4",
			"a:\n  b:" + space + "4\n":                 "2:5-6",
			"a:\n  -" + space + "b\n":                  "2:4-5",
			"a: " + space + "b\n":                      "1:4-5",
			"a: [" + space + "b]\n":                    "1:5-6",
			"a" + space + ": b\n":                      "1:2-3",
			"a: 1 " + space + "# comment\n":            "1:6-7",
			"a: text\n " + space + "that goes on\n":    "2:2-3",
		} {
			wantOnly(t, data, diag.YAMLEncoding, place)
		}
	}
	for data, place := range map[string]string{
		"a:\n\vb: 1\n": "2:1-2", "a: 1\n\fb: 1\n": "2:1-2", "a: 1\n\ufeffb: 2\n": "2:1-2",
		"a:\n\u0085 b: 1\n": "2:1-2",
		"a:\n\u2028b: 1\n":  "2:1-2", "a: 1\rb: 2\n": "1:5-6",
	} {
		wantOnly(t, data, diag.YAMLEncoding, place)
	}
}

// Within prose they belong to the language or to an emoji.
func TestInvisibleCharactersAreFineWithinText(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		"a: environ 3\u202f000\u00a0€\n", "a: \"\u00a0b\"\n", "'a\u00a0': b\n", "a: done ✔\ufe0f\n",
		"a: 👩\u200d🚀 flies\n",
		"a: |\n  \u00a0text\n  \u200bmore\n", "a: b # \u00a0comment\n", "\ufeffa: b\n",
		"a: [1,\n\t\n 2]\n",
		"a: می\u200cخواهم\n",
	} {
		if file, list := source.Load("x.yaml", []byte(data)); file == nil || len(list) > 0 {
			t.Errorf("%q: got %s", data, summary(list))
		}
	}
}
