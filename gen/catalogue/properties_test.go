package catalogue_test

import (
	"fmt"
	"go/build"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/diag"
)

const preamble = `outboxgen: 1
service: shop/orders
go: {package: events, dir: internal/events}
database: {engine: postgresql}
defaults: {topic: shop.orders}
`

var snake = rapid.StringMatching(`[a-z][a-z0-9]{0,8}(_[a-z0-9]{1,8}){0,3}`)

func TestNamesAreExportedIdentifiersAndFilesThatTheGoCommandBuilds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		yaml := fmt.Sprintf(`%s
events:
  "%s.%s@%d": {payload: {"%s": string}}
consumers:
  "%s": {handles: [], emits: []}
`, preamble, snake.Draw(t, "noun"), snake.Draw(t, "verb"), rapid.IntRange(1, 9999).Draw(t, "version"),
			snake.Draw(t, "field"), snake.Draw(t, "consumer"))
		yaml = strings.Replace(yaml, "handles: [], emits: []",
			fmt.Sprintf("handles: [%s]", eventOf(yaml)), 1)
		c, list := catalogue.Parse("outbox.yaml", []byte(yaml))
		if c == nil {
			for _, d := range list {
				if d.Severity == diag.Error && d.Rule != diag.NameReserved &&
					d.Rule != diag.NameCollision {
					t.Fatalf("%s\n%v", yaml, d)
				}
			}
			return
		}
		for _, name := range []string{c.Events[0].GoName, c.Events[0].Fields[0].GoName,
			c.Consumers[0].GoName} {
			if !token.IsExported(name) || !token.IsIdentifier(name) {
				t.Errorf("got name %q, want an exported identifier", name)
			}
		}
		for _, file := range []string{c.Events[0].FileName, c.Consumers[0].FileName} {
			if strings.HasSuffix(file, "_test.go") || !builtEverywhere(t, file) {
				t.Errorf("got file %q, want one that is built everywhere", file)
			}
		}
	})
}

func eventOf(yaml string) string {
	_, rest, _ := strings.Cut(yaml, "events:\n  ")
	name, _, _ := strings.Cut(rest, ": ")
	return name
}

func builtEverywhere(t *rapid.T, file string) bool {
	dir, err := os.MkdirTemp("", "names")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(dir+"/"+file, []byte("package events\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, system := range []string{"linux", "windows"} {
		ctx := build.Default
		ctx.GOOS, ctx.GOARCH = system, "arm64"
		if ok, err := ctx.MatchFile(dir, file); err != nil || !ok {
			return false
		}
	}
	return true
}

// Every way of writing a type means the same.
func TestTypesMeanTheSameHoweverTheyAreWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := drawType(t, 4)
		yaml := fmt.Sprintf(`%s
types:
  Money: {fields: {amount: int64}}
events:
  order.placed@1:
    payload:
      a: %q
      b: {type: %q}
      c: %s
      d: {type: %s}
`, preamble, x.text, x.text, x.yaml, x.yaml)
		c, list := catalogue.Parse("outbox.yaml", []byte(yaml))
		if c == nil {
			t.Fatalf("%s\n%v", yaml, list)
		}
		for _, f := range c.Events[0].Fields[1:] {
			if diff := cmp.Diff(c.Events[0].Fields[0].Type, f.Type); diff != "" {
				t.Errorf("%s: %s differs (-a +%s):\n%s", yaml, f.Name, f.Name, diff)
			}
		}
	})
}

type drawnType struct{ text, yaml string }

func drawType(t *rapid.T, depth int) drawnType {
	kind := 0
	if depth > 0 {
		kind = rapid.IntRange(0, 3).Draw(t, "kind")
	}
	var x drawnType
	switch kind {
	case 1:
		elem := drawType(t, depth-1)
		x = drawnType{"[" + elem.text + "]", "[" + elem.yaml + "]"}
	case 2:
		elem := drawType(t, depth-1)
		x = drawnType{"{string: " + elem.text + "}", "{string: " + elem.yaml + "}"}
	default:
		name := rapid.SampledFrom([]string{"string", "uuid", "json", "Money"}).Draw(t, "name")
		x = drawnType{name, name}
	}
	if rapid.Bool().Draw(t, "optional") {
		x.text += "?"
		x.yaml = fmt.Sprintf("%q", x.text) // within brackets, YAML takes the ? for itself
	}
	return x
}

// addSeeds adds every case of the tests, and what breaks readers.
func addSeeds(f *testing.F) {
	f.Helper()
	whole, err := os.ReadFile("testdata/whole.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	paths, err := os.ReadDir("testdata/diagnostics")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile("testdata/diagnostics/" + path.Name())
		if err != nil {
			f.Fatal(err)
		}
		for _, block := range strings.Split("\n"+string(data), "\n=== ")[1:] {
			name, rest, _ := strings.Cut(block, "\n")
			yaml, _, _ := strings.Cut(rest, ">>>\n")
			f.Add([]byte(diagnosticCase{name: name, yaml: yaml}.catalogue()))
		}
	}
	for _, s := range []string{
		"", "\xef\xbb\xbfa: b", "\xff\xfea\x00", "a: \x00", "a: b\r", "a:\r\n  b: c\r\n",
		"---\n...\n", "%YAML 1.2\n---\n", "? ?\n", "- - - -\n",
		"a: &a [*a]\n", "a: [&x [&y [*x, *y]]]", strings.Repeat("[", 2000),
		strings.Repeat("a:\n ", 50), "a: |2-\n   x\n", "a: >+\n\n\n", `a: "\ud800"`,
		"\t\t", "a: b\n\t\n  \tc", "a: [\n\t\n",
	} {
		f.Add([]byte(s))
	}
}

func FuzzParse(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, list := catalogue.Parse("outbox.yaml", data)
		if (c == nil) != list.HasErrors() {
			t.Errorf("got a catalogue: %v, and errors: %v", c != nil, list.HasErrors())
		}
		lines := strings.Count(string(data), "\n") + 1
		for _, d := range list {
			if d.Pos.Line < 0 || d.Pos.Line > lines || d.Pos.Column < 0 || d.Pos.End != 0 &&
				d.Pos.End <= d.Pos.Column {
				t.Errorf("got position %+v in %d lines for %s", d.Pos, lines, d.Message)
			}
		}
		var b strings.Builder
		if err := diag.WriteText(&b, list, map[string][]byte{"outbox.yaml": data}); err != nil {
			t.Error(err)
		}
		again, second := catalogue.Parse("outbox.yaml", data)
		if diff := cmp.Diff(list, second); diff != "" || (c == nil) != (again == nil) {
			t.Errorf("a second run differs:\n%s", diff)
		}
	})
}

// largeCatalogue has 500 events and 200 types.
func largeCatalogue() []byte {
	var b strings.Builder
	b.WriteString(preamble + "types:\n")
	for i := range 200 {
		fmt.Fprintf(&b,
			"  Type%d:\n    doc: A part of payloads.\n    fields:\n      id: uuid\n"+
				"      name: {type: string, max_length: 40}\n", i)
		if i > 0 {
			fmt.Fprintf(&b, "      before: Type%d?\n", i-1)
		}
	}
	b.WriteString("events:\n")
	for i := range 500 {
		fmt.Fprintf(&b,
			"  thing%d.changed@1:\n    doc: A thing was changed.\n    key: id\n"+
				"    payload:\n      id: uuid\n      part: Type%d\n", i, i%200)
		b.WriteString("      amount: int64\n      note: string?\n      tags: [string]\n" +
			"      labels: {string: string}\n")
	}
	b.WriteString("consumers:\n  all:\n    handles:\n")
	for i := range 500 {
		fmt.Fprintf(&b, "      - thing%d.changed@1\n", i)
	}
	return []byte(b.String())
}

func TestALargeCatalogueParses(t *testing.T) {
	t.Parallel()
	c, list := catalogue.Parse("outbox.yaml", largeCatalogue())
	if c == nil || len(c.Events) != 500 || len(list) > 0 {
		t.Fatalf("got %v, want 500 events and no diagnostics", list)
	}
}

// What was meant is searched for among all names: where hardly one is right, that would take
// minutes.
func TestSuggestionsEndWhereNobodyReadsThem(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(preamble +
		"types:\n  Money: {fields: {amount: int64}}\nevents:\n  order.placed@1:\n    payload:\n")
	for i := range 300 {
		fmt.Fprintf(&b, "      field%d: Mony\n", i)
	}
	_, list := catalogue.Parse("outbox.yaml", []byte(b.String()))
	suggested := 0
	for _, d := range list {
		if strings.Contains(d.Help, `"Money"`) {
			suggested++
		}
	}
	if list[0].Help != `did you mean "Money"?` || suggested < diag.MaxPrinted ||
		suggested > 2*diag.MaxPrinted {
		t.Errorf("got %d suggestions for %d problems, and %q for the first", suggested, len(list),
			list[0].Help)
	}
}

func BenchmarkParse(b *testing.B) {
	data := largeCatalogue()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if c, list := catalogue.Parse("outbox.yaml", data); c == nil {
			b.Fatal(list)
		}
	}
}

// A syntax error makes the file be read many times.
func BenchmarkParseSyntaxError(b *testing.B) {
	data := append(largeCatalogue(), "   nonsense: [\n"...)
	for b.Loop() {
		if c, _ := catalogue.Parse("outbox.yaml", data); c != nil {
			b.Fatal("got a catalogue")
		}
	}
}
