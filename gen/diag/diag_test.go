package diag_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outboxgen/outboxgen/gen/diag"
)

func at(line, column, end int) diag.Pos {
	return diag.Pos{File: "outbox.yaml", Line: line, Column: column, End: end}
}

func text(t *testing.T, list diag.List, source string) string {
	t.Helper()
	var b strings.Builder
	if err := diag.WriteText(&b, list,
		map[string][]byte{"outbox.yaml": []byte(source)}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTextShowsTheLineWithCaretsAndHelp(t *testing.T) {
	t.Parallel()
	source := strings.Repeat("\n", 13) + "    key: order_idd\n"
	list := diag.List{diag.New(diag.EventKeyField, at(14, 10, 19),
		"key %q is not a field of order.placed@1", "order_idd").
		WithHelp("did you mean %q?", "order_id")}
	want := `outbox.yaml:14:10: error: key "order_idd" is not a field of order.placed@1 [EVENT_KEY_FIELD]
   14 |     key: order_idd
      |          ^^^^^^^^^
   = help: did you mean "order_id"?
`
	if diff := cmp.Diff(want, text(t, list, source)); diff != "" {
		t.Errorf("text differs (-want +got):\n%s", diff)
	}
}

func TestTextKeepsCaretsUnderTheirRunes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		source string
		pos    diag.Pos
		want   string
	}{
		"tabs":              {"\ta\tbc", at(1, 4, 6), "    1 | \ta\tbc\n      | \t \t^^\n"},
		"wide runes":        {"受注: x", at(1, 5, 6), "    1 | 受注: x\n      |       ^\n"},
		"marked wide runes": {"受注: x", at(1, 1, 3), "    1 | 受注: x\n      | ^^^^\n"},
		"combining marks":   {"e\u0301: x", at(1, 5, 6), "    1 | e\u0301: x\n      |    ^\n"},
		"carriage returns":  {"a: x\r\nb", at(1, 4, 5), "    1 | a: x\n      |    ^\n"},
		"a byte order mark": {"\ufeffa: x", at(1, 4, 5), "    1 | a: x\n      |    ^\n"},
		"what a terminal obeys": {"a: \x1b[31m\u202e x", at(1, 4, 5),
			"    1 | a: \ufffd[31m\ufffd x\n      |    ^\n"},
		"behind the end":         {"a:", at(1, 3, 4), "    1 | a:\n      |   ^\n"},
		"far behind the end":     {"a:", at(1, 90, 99), "    1 | a:\n      |   ^\n"},
		"an end beyond the line": {"a: b", at(1, 4, 99), "    1 | a: b\n      |    ^\n"},
		"no end":                 {"a: b", at(1, 4, 0), "    1 | a: b\n      |    ^\n"},
		"no column":              {"a: b", at(1, 0, 0), "    1 | a: b\n"},
		"no such line":           {"a: b", at(7, 1, 2), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, got, _ := strings.Cut(text(t, diag.List{diag.New(diag.YAMLSyntax, c.pos, "no")},
				c.source), "\n")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("snippet differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTextShowsAWindowOfALongLine(t *testing.T) {
	t.Parallel()
	source := strings.Repeat("a", 5000) + "HERE" + strings.Repeat("b", 5000)
	got := text(t, diag.List{diag.New(diag.YAMLSyntax, at(1, 5001, 5005), "no")}, source)
	lines := strings.Split(got, "\n")
	if len(lines[1]) > 200 || !strings.Contains(lines[2], "^^^^") {
		t.Fatalf("got:\n%s", got)
	}
	shown, carets := []rune(lines[1]), strings.Index(lines[2], "^")
	if got := string(shown[carets : carets+4]); got != "HERE" {
		t.Errorf("got carets under %q, want them under HERE", got)
	}
}

func TestTextShowsBothEndsOfADuplicate(t *testing.T) {
	t.Parallel()
	list := diag.List{diag.New(diag.YAMLDuplicateKey, at(2, 1, 2),
		"key %q is here a second time", "a").WithRelated(at(1, 1, 2), "the first one")}
	want := `outbox.yaml:2:1: error: key "a" is here a second time [YAML_DUPLICATE_KEY]
    2 | a: 2
      | ^
outbox.yaml:1:1: note: the first one
    1 | a: 1
      | ^
`
	if diff := cmp.Diff(want, text(t, list, "a: 1\na: 2\n")); diff != "" {
		t.Errorf("text differs (-want +got):\n%s", diff)
	}
}

func TestTextNamesAPlaceAsFarAsItIsKnown(t *testing.T) {
	t.Parallel()
	list := diag.List{
		diag.New(diag.YAMLSyntax, diag.Pos{}, "nowhere"),
		diag.New(diag.YAMLSyntax, diag.Pos{File: "other.yaml"}, "a file\nand more"),
		diag.New(diag.YAMLSyntax, diag.Pos{File: "other.yaml", Line: 3}, "a line"),
	}
	want := "error: nowhere [YAML_SYNTAX]\nother.yaml: error: a file and more [YAML_SYNTAX]\n" +
		"other.yaml:3: error: a line [YAML_SYNTAX]\n"
	if diff := cmp.Diff(want, text(t, list, "")); diff != "" {
		t.Errorf("text differs (-want +got):\n%s", diff)
	}
}

func TestTextStopsAtFiftyAndKeepsTheGravest(t *testing.T) {
	t.Parallel()
	var list diag.List
	for i := range 60 {
		list.Add(diag.New(diag.LintEventUnhandled, at(i+2, 1, 2), "info %d", i))
	}
	list.Add(diag.New(diag.LintEventDoc, at(99, 1, 2), "the warning"),
		diag.New(diag.YAMLTab, at(100, 1, 2), "the error"))
	got := text(t, list, "")
	if n := strings.Count(got, "\n"); n != 51 {
		t.Errorf("got %d lines, want 50 and one", n)
	}
	if !strings.Contains(got, "the error") || !strings.Contains(got, "the warning") ||
		!strings.HasSuffix(got, "\nand 12 more: 12 infos\n") {
		t.Errorf("got:\n%s", got)
	}
}

func TestSortOrdersByPlaceAndDropsWhatIsSaidTwice(t *testing.T) {
	t.Parallel()
	a, b, c := diag.New(diag.YAMLTab, at(1, 2, 3), "a"), diag.New(diag.YAMLTab, at(1, 10, 11),
		"b"), diag.New(diag.LintEventDoc, at(1, 10, 11), "c")
	list := diag.List{c, b, a, b}
	list.Sort()
	if diff := cmp.Diff(diag.List{a, b, c}, list); diff != "" {
		t.Errorf("list differs (-want +got):\n%s", diff)
	}
	if !list.HasErrors() || (diag.List{c}).HasErrors() {
		t.Error("HasErrors does not tell errors from warnings")
	}
}

func TestJSONHoldsEverything(t *testing.T) {
	t.Parallel()
	var list diag.List
	for i := range 60 {
		list.Add(diag.New(diag.YAMLDuplicateKey, at(i+1, 1, 2), "<%d>", i).WithHelp("h").
			WithRelated(at(1, 2, 0), "r"))
	}
	var b strings.Builder
	if err := diag.WriteJSON(&b, list); err != nil {
		t.Fatal(err)
	}
	var got struct{ Diagnostics []map[string]any }
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"file": "outbox.yaml", "line": 1.0, "column": 1.0, "end_column": 2.0, "severity": "error",
		"rule":    "YAML_DUPLICATE_KEY",
		"message": "<0>", "help": "h",
		"related": []any{map[string]any{"file": "outbox.yaml", "line": 1.0, "column": 2.0,
			"message": "r"}},
	}
	if len(got.Diagnostics) != 60 {
		t.Fatalf("got %d diagnostics, want 60", len(got.Diagnostics))
	}
	if diff := cmp.Diff(want, got.Diagnostics[0]); diff != "" {
		t.Errorf("diagnostic differs (-want +got):\n%s", diff)
	}
}

func TestJSONOfNothingIsAnEmptyList(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := diag.WriteJSON(&b, nil); err != nil {
		t.Fatal(err)
	}
	if want := "{\n  \"diagnostics\": []\n}\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestGitHubEscapesWhatItsCommandsReserve(t *testing.T) {
	t.Parallel()
	list := diag.List{
		diag.New(diag.YAMLTab, diag.Pos{File: "a,b:c%.yaml", Line: 3, Column: 4, End: 6},
			"100%%: a,\r\nb").WithHelp("h").
			WithRelated(at(1, 2, 0), "first"),
		diag.New(diag.LintEventDoc, diag.Pos{File: "b.yaml"}, "w"),
		diag.New(diag.LintEventUnhandled, diag.Pos{File: "c.yaml", Line: 1}, "i"),
	}
	var b strings.Builder
	if err := diag.WriteGitHub(&b, list); err != nil {
		t.Fatal(err)
	}
	want := "::error file=a%2Cb%3Ac%25.yaml,line=3,col=4,endColumn=6,title=YAML_TAB" +
		"::100%25: a,%0D%0Ab%0A" +
		"help: h%0Aoutbox.yaml:1:2: first\n" +
		"::warning file=b.yaml,title=LINT_EVENT_DOC::w\n" +
		"::notice file=c.yaml,line=1,title=LINT_EVENT_UNHANDLED::i\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("commands differ (-want +got):\n%s", diff)
	}
}

func TestGitHubSaysHowManyMore(t *testing.T) {
	t.Parallel()
	var list diag.List
	for i := range 53 {
		list.Add(diag.New(diag.YAMLTab, at(i+1, 1, 2), "no"))
	}
	var b strings.Builder
	if err := diag.WriteGitHub(&b, list); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintln("::notice title=outboxgen::and 3 more: 3 errors")
	if !strings.HasSuffix(b.String(), want) {
		t.Errorf("got %q, want it to end in %q", b.String(), want)
	}
}
