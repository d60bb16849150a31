package source_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/source"
)

// summary writes diagnostics as place, rule and message.
func summary(list diag.List) string {
	var b strings.Builder
	for _, d := range list {
		fmt.Fprintf(&b, "%d:%d-%d %s: %s\n", d.Pos.Line, d.Pos.Column, d.Pos.End, d.Rule, d.Message)
	}
	return b.String()
}

func TestLoadKeepsWhereEverythingStands(t *testing.T) {
	t.Parallel()
	file, list := source.Load("x.yaml",
		[]byte("\ufeffü: {\"ä\\\"\": [b, 'it''s'], c: 1.10} # end\r\n"+
			"d: |\r\n  text\r\ne: two\r\n  lines\r\nf:\r\n- g: ~\r\n"))
	if len(list) > 0 {
		t.Fatal(summary(list))
	}
	var b strings.Builder
	show(&b, file.Root)
	want := `1:1-2 key "ü" text
1:4-34 a mapping
1:5-10 key "ä\"" text
1:12-24 a list
1:13-14 "b" text
1:16-23 "it's" text
1:26-27 key "c" text
1:29-33 "1.10" a number
2:1-2 key "d" text
2:4-5 "text\n" text
4:1-2 key "e" text
4:4-7 "two lines" text
6:1-2 key "f" text
7:1-7 a list
7:3-4 key "g" text
7:6-7 "~" null
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("places differ (-want +got):\n%s", diff)
	}
}

func show(b *strings.Builder, n *source.Node) {
	for _, p := range n.Pairs {
		fmt.Fprintf(b, "%d:%d-%d key %q %s\n", p.Key.Pos.Line, p.Key.Pos.Column, p.Key.Pos.End,
			p.Key.Text, p.Key.Reading)
		showValue(b, p.Value)
	}
	for _, item := range n.Items {
		if item.Kind == source.Mapping {
			show(b, item)
			continue
		}
		showValue(b, item)
	}
}

func showValue(b *strings.Builder, n *source.Node) {
	pos := fmt.Sprintf("%d:%d-%d", n.Pos.Line, n.Pos.Column, n.Pos.End)
	if n.Kind == source.Scalar {
		fmt.Fprintf(b, "%s %q %s\n", pos, n.Text, n.Reading)
		return
	}
	fmt.Fprintf(b, "%s %s\n", pos, n.Kind)
	show(b, n)
}

func TestLoadRefusesWhatHidesInAFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ data, want string }{
		"a byte that is not UTF-8": {"a: ü\nb: x\xffy",
			"2:5-6 YAML_ENCODING: byte 0xFF is not UTF-8\n"},
		"UTF-16": {"\xff\xfea\x00",
			"1:1-0 YAML_ENCODING: the file is UTF-16, and must be UTF-8\n"},
		"a zero byte": {"a: \x00",
			"1:4-5 YAML_ENCODING: U+0000 is not a character that text has\n"},
		"an escape": {"a: \x1b[0m",
			"1:4-5 YAML_ENCODING: U+001B is not a character that text has\n"},
		"a byte order mark amid text": {"a: \ufeffb",
			"1:4-5 YAML_ENCODING: U+FEFF is not a character that text has\n"},
		"a carriage return of its own": {"a: b\rc: d",
			"1:5-6 YAML_ENCODING: a carriage return without a line feed\n"},
		"a line separator": {"a: b # \u2028c: d",
			"1:8-9 YAML_ENCODING: U+2028 is a line break to some readers and not to others\n"},
		"a next line": {"a: b\u0085",
			"1:5-6 YAML_ENCODING: U+0085 is a line break to some readers and not to others\n"},
		"a turned direction": {"a: \u202eb",
			"1:4-5 YAML_ENCODING: U+202E turns the direction of writing, " +
				"so that the file reads differently from what it says\n"},
		"too much": {strings.Repeat("a", source.MaxBytes+1),
			"0:0-0 YAML_LIMIT: the file has 1048577 bytes, and 1048576 are the limit\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, list := source.Load("x.yaml", []byte(c.data))
			if diff := cmp.Diff(c.want, summary(list)); diff != "" || file != nil {
				t.Errorf("got a file: %v, diagnostics differ (-want +got):\n%s", file != nil, diff)
			}
		})
	}
}

func TestLoadReportsTenBadCharactersAtMost(t *testing.T) {
	t.Parallel()
	if _, list := source.Load("x.yaml", []byte(strings.Repeat("\x00", 5000))); len(list) != 10 {
		t.Errorf("got %d diagnostics, want 10", len(list))
	}
}

func TestLoadSurvivesBombs(t *testing.T) {
	t.Parallel()
	laughs := "a0: &a0 [x]\n"
	for i := range 30 {
		laughs += fmt.Sprintf("a%d: &a%d [*a%d, *a%d, *a%d]\n", i+1, i+1, i, i, i)
	}
	for name, data := range map[string]string{
		"billion laughs": laughs,
		"open brackets":  strings.Repeat("[", 100_000),
		"open braces":    strings.Repeat("{a: ", 50_000),
		"deep lists":     strings.Repeat("- ", 20_000) + "x",
		"deep mappings":  strings.Repeat("? ", 20_000) + "x",
		"deep brackets":  strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, list := source.Load("x.yaml", []byte(data)); !list.HasErrors() {
				t.Error("got no error")
			}
		})
	}
}

func TestLoadOfNothing(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"", "\n", "# only a comment\n", "---\n", "\ufeff"} {
		file, list := source.Load("x.yaml", []byte(data))
		if len(list) > 0 || file == nil || !file.Root.IsEmpty() {
			t.Errorf("%q: got %+v and %v, want an empty scalar", data, file, list)
		}
	}
}

func TestCommentsToThisToolAreDirectives(t *testing.T) {
	t.Parallel()
	data := "# outboxgen:ignore A because\na: 1 # outboxgen:x\n# about outboxgen: no\n" +
		"b: |\n  # outboxgen:ignore text\nc: \"#outboxgen:no\"\n#outboxgen:tight\n"
	file, list := source.Load("x.yaml", []byte(data))
	if len(list) > 0 {
		t.Fatal(summary(list))
	}
	var got []string
	for _, n := range file.Directives {
		got = append(got, fmt.Sprintf("%d:%d-%d %s", n.Pos.Line, n.Pos.Column, n.Pos.End, n.Text))
	}
	want := []string{"1:3-29 outboxgen:ignore A because", "2:8-19 outboxgen:x",
		"7:2-17 outboxgen:tight"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("directives differ (-want +got):\n%s", diff)
	}
}

// catalogueLines is a file in which every line can be broken.
func catalogueLines() []string {
	var lines []string
	for i := range 20 {
		lines = append(lines,
			fmt.Sprintf("event%d:", i),
			"  doc: |",
			"    Some text: it goes on,",
			"",
			"    and on.",
			"  handles: [",
			"    one,",
			"    two",
			"  ]",
			"  fields:",
			"    a: string?",
			"    b: {type: string, doc: \"two",
			"      lines\"}",
		)
	}
	return lines
}

// Whatever single line is broken, in whatever way, the error is reported on that line.
func TestSyntaxErrorsAreReportedOnTheirLine(t *testing.T) {
	t.Parallel()
	broken := []string{
		"    c: {type: string", "    c: [a, b", "    c: \"open", "    c: 'open", "   c: string",
		"      c: d: e", "    c: @name", "    c: `name`", "    c: %name",
		"    - item", "    c: [a]]", "    c: {a: b}}", "    c: \"\\d\"", "    c: [b?]",
		"    c: *nothing", "\tc: d", "    c: - item", "    c: !x!y z", "    c: \"a\" b",
		"    c: [a b: c: d]", "  \tc: d", "    ]", "    }", "    c: |x", "    c: {a: b c: d}",
	}
	lines := catalogueLines()
	for _, bad := range broken {
		for _, block := range []int{0, 7, 19} {
			at := block*13 + 11 // after "a: string?"
			data := strings.Join(append(append(append([]string{}, lines[:at]...), bad),
				lines[at:]...), "\n") + "\n"
			_, list := source.Load("x.yaml", []byte(data))
			if len(list) != 1 || list[0].Pos.Line != at+1 {
				t.Errorf("%q: got %s, want an error on line %d", bad, summary(list), at+1)
			}
		}
	}
}

func TestLoadNeverPanicsAndIsDeterministic(t *testing.T) {
	t.Parallel()
	piece := rapid.SampledFrom([]string{
		"a", "b:", ": ", "- ", "\n", "\n  ", "\n    ", "{", "}", "[", "]", ",", "\"", "'", "&x ",
		"*x ", "!t ", "|", ">", "#", " # ", "? ", "%", "---\n", "...\n", "\t",
		"<<: ", "~", "no", "1.10", "ü", "\r\n", "\u2028", "@", "`", "\\",
	})
	rapid.Check(t, func(t *rapid.T) {
		data := []byte(strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "pieces"), ""))
		first, list := source.Load("x.yaml", data)
		second, again := source.Load("x.yaml", data)
		if diff := cmp.Diff(first, second) + cmp.Diff(list, again); diff != "" {
			t.Errorf("two runs differ:\n%s", diff)
		}
		if first == nil && !list.HasErrors() {
			t.Error("got neither a file nor an error")
		}
	})
}
