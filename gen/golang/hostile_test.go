package golang_test

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/golang"
)

// What a catalogue's author could write to reach more than a comment or a string. The rules of
// package catalogue refuse some of it.
var (
	hostileDoc = strings.Join([]string{
		"It ends */ a comment, and `quotes` \"it\" 100 %d.",
		"go:build ignore",
		"//go:embed secret",
		"+build ignore",
		"nolint: all",
		"",
		"",
		"Deprecated: smuggled() never.",
		"   indented code()",
		"\t- and a list",
		"# Heading",
		"A return\rand a separator\u2028and a bell\a and a mark\ufeff " +
			"and a trick\u202e and half a rune\xff and Grüße, 世界 🎉.",
		strings.Repeat("long ", 40) + "go:noinline " + strings.Repeat("x", 150) +
			" Deprecated: wrapped",
		"",
	}, "\n")
	hostileText       = "a`b\"c\\d\n*/ %s \x00 \u2028 世界"
	hostileDeprecated = "use `nothing` */\n//go:noinline \"at\" all"
)

// Whatever a text says, to the compiler and to tools it is a comment or a string, and nothing else.
func TestHostileTextReachesNoTool(t *testing.T) {
	t.Parallel()
	for _, f := range emit(t, "hostile", hostile()) {
		checkFile(t, f, true)
	}
}

func FuzzComment(f *testing.F) {
	for line := range strings.SplitSeq(hostileDoc, "\n") {
		f.Add(line+"\n"+line, "")
	}
	f.Add("# Head\n\n  1. list\n[link]: https://example.com", hostileDeprecated)
	f.Fuzz(func(t *testing.T, doc, deprecated string) {
		comment := golang.CommentText(deprecated, "T is a type.", doc)
		src, err := golang.Formatted([]byte("package p\n\n" + comment + "\ntype T struct {\n" +
			comment + "\nF int // last\n}\n"))
		if err != nil {
			t.Fatal(err)
		}
		checkFile(t, golang.File{Path: "p.go", Content: src}, strings.TrimSpace(deprecated) != "")
	})
}

// directive is what tools act upon at the beginning of a comment.
var directive = regexp.MustCompile(`(?i)^//(go:|line |export |\s*\+build|\s*nolint|\s*lint:|\s*go:)`)

// checkFile wants a file that gofmt leaves as it is, in which text has become neither code nor a
// directive.
func checkFile(t *testing.T, f golang.File, deprecated bool) {
	t.Helper()
	formatted, err := format.Source(f.Content)
	if err != nil || !bytes.Equal(formatted, f.Content) {
		t.Errorf("%s is not as gofmt has it: %v\n%s", f.Path, err, f.Content)
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), f.Path, f.Content, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Name == "smuggled" {
			t.Errorf("%s: text has become code", f.Path)
		}
		return true
	})
	for _, group := range parsed.Comments {
		checkComment(t, f.Path, group, deprecated)
	}
}

// checkComment wants a comment of lines that no tool acts upon, except for a paragraph about
// deprecation if deprecated is true.
func checkComment(t *testing.T, path string, group *ast.CommentGroup, deprecated bool) {
	t.Helper()
	for _, c := range group.List {
		if directive.MatchString(c.Text) || !strings.HasPrefix(c.Text, "//") {
			t.Errorf("%s: a tool may act upon %q", path, c.Text)
		}
	}
	found := 0
	for p := range strings.SplitSeq(strings.TrimSpace(group.Text()), "\n\n") {
		if strings.HasPrefix(p, "Deprecated:") {
			found++
		}
	}
	if found > 1 || found == 1 && !deprecated {
		t.Errorf("%s: tools read %q as being deprecated", path, group.Text())
	}
}

// hostile has such text wherever text can stand.
func hostile() *catalogue.Catalogue {
	doc, text, deprecated := hostileDoc, hostileText, hostileDeprecated
	enum := &catalogue.Type{
		Name: "Enum", GoName: "Enum", Doc: doc,
		Enum: &catalogue.Enum{Values: []catalogue.EnumValue{{Value: text, GoName: "EnumOne"}}},
	}
	field := catalogue.Field{
		Name: "text", GoName: "Text", JSONName: "a`b\"c\\d", Doc: doc,
		Type: catalogue.Ref{Scalar: catalogue.String}, PII: true, Deprecated: deprecated,
		Constraints: catalogue.Constraints{Pattern: "`\\d\"*/\n%"},
	}
	other := field // of a struct of its own
	kind := &catalogue.Field{Name: "kind", GoName: "Kind", JSONName: "kind",
		Type: catalogue.Ref{Kind: catalogue.KindNamed, Named: enum}}
	event := &catalogue.Event{
		Name: "thing.done", Version: 1, Doc: doc, Topic: text, Deprecated: deprecated,
		Personal: true,
		Fields:   []*catalogue.Field{kind, &field},
		GoName:   "ThingDoneV1", FileName: "thing_done_v1.gen.go",
	}
	return &catalogue.Catalogue{
		Service:  text,
		Go:       catalogue.Go{Package: "events", Dir: "events"},
		Database: catalogue.Database{Engine: "postgresql", Schema: "we`ird\"", Prefix: "a'b_"},
		Relay:    catalogue.Relay{Shards: 64, Retention: 1500},
		Types: []*catalogue.Type{enum, {
			Name: "Struct", GoName: "Struct", Doc: doc, Fields: []*catalogue.Field{&other},
			Personal: true,
		}},
		Events: []*catalogue.Event{event},
		Consumers: []*catalogue.Consumer{{
			Name: "reader", Doc: doc, Handles: []*catalogue.Event{event},
			Emits:  []*catalogue.Event{event},
			GoName: "Reader", FileName: "reader_consumer.gen.go",
		}},
	}
}
