package golang_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/golang"
)

var update = flag.Bool("update", false, "write the golden files")

// importPath is where the examples' compile_test.go has the goldens compiled.
const importPath = "github.com/outboxgen/outboxgen/examples/internal/goldens/"

func TestEmitMatchesTheGoldens(t *testing.T) {
	t.Parallel()
	for name, c := range cases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := withGolden(name, emit(t, name, c))
			if *update {
				write(t, name, files)
			}
			var want []string
			for _, f := range files {
				want = append(want, f.Path)
				golden, err := os.ReadFile(filepath.Join("testdata", name,
					filepath.FromSlash(f.Path)))
				if err != nil {
					t.Fatalf("%v; run go test with -update", err)
				}
				if !bytes.Equal(f.Content, golden) {
					t.Errorf("%s differs from the golden file; look at the difference after "+
						"go test with -update. Got:\n%s", f.Path, f.Content)
				}
			}
			if got := goldens(t, name); fmt.Sprint(got) != fmt.Sprint(sorted(want)) {
				t.Errorf("golden files: got %v, want %v", got, sorted(want))
			}
		})
	}
}

// The store is the same for every catalogue with consumers, and for every one without, except for
// its package, where sqlc's package is, and the query that settles what was published.
func TestTheStoreDiffersInThreePlacesOnly(t *testing.T) {
	t.Parallel()
	all := cases(t)
	stores := map[string]string{}
	for name, c := range all {
		for _, f := range emit(t, name, c) {
			if f.Path == constantFile {
				stores[name] = string(f.Content)
			}
		}
	}
	settle := func(name string) string {
		if all[name].Relay.Retention > 0 {
			return "MoveEventsToSent"
		}
		return "DeleteEvents"
	}
	for name, c := range all {
		of := constantCase(c)
		differ := strings.NewReplacer(
			"package "+all[of].Go.Package+"\n", "package "+c.Go.Package+"\n",
			importPath+of+"/", importPath+name+"/",
			settle(of), settle(name),
		)
		if diff := cmp.Diff(differ.Replace(stores[of]), stores[name]); diff != "" {
			t.Errorf("the store of %s differs in more than that (-want +got):\n%s", name, diff)
		}
		if n := strings.Count(stores[name], settle(name)); n == 0 {
			t.Errorf("the store of %s does not use %s", name, settle(name))
		}
	}
}

func TestEmitIsDeterministic(t *testing.T) {
	t.Parallel()
	first, second := cases(t), cases(t)
	for name, c := range first {
		a, b, again := emit(t, name, c), emit(t, name, c), emit(t, name, second[name])
		if fmt.Sprintf("%q", a) != fmt.Sprintf("%q", b) ||
			fmt.Sprintf("%q", a) != fmt.Sprintf("%q", again) {
			t.Errorf("%s: two runs differ", name)
		}
	}
}

func TestFilesAreFormattedAndGroupTheirImports(t *testing.T) {
	t.Parallel()
	for name, c := range cases(t) {
		for _, f := range emit(t, name, c) {
			formatted, err := format.Source(f.Content)
			if err != nil {
				t.Fatalf("%s/%s: %v", name, f.Path, err)
			}
			if !bytes.Equal(formatted, f.Content) {
				t.Errorf("%s/%s is not as gofmt has it", name, f.Path)
			}
			checkImports(t, name+"/"+f.Path, f.Content)
		}
	}
}

// checkImports wants imports without names, the standard library's first and apart.
func checkImports(t *testing.T, name string, content []byte) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, content, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for i, spec := range f.Imports {
		if spec.Name != nil {
			t.Errorf("%s: import %s has the name %s", name, spec.Path.Value, spec.Name)
		}
		if i == 0 {
			continue
		}
		before := f.Imports[i-1]
		apart := fset.Position(spec.Pos()).Line > fset.Position(before.Pos()).Line+1
		changes := isStandard(before.Path.Value) != isStandard(spec.Path.Value)
		if apart != changes {
			t.Errorf("%s: imports %s and %s: apart is %t, want %t", name, before.Path.Value,
				spec.Path.Value, apart, changes)
		}
		if !isStandard(before.Path.Value) && isStandard(spec.Path.Value) {
			t.Errorf("%s: %s stands behind %s", name, spec.Path.Value, before.Path.Value)
		}
	}
}

func isStandard(path string) bool { return !strings.Contains(path, ".") }

// A module's path may lack a point, such as that of a service which nobody imports.
func TestAModuleWithoutAHostIsNotOfTheStandardLibrary(t *testing.T) {
	t.Parallel()
	files, err := golang.Emit(cases(t)["orders"], "shop/events")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, f := range files {
		_, after, imported := strings.Cut(string(f.Content), "\"shop/events/outboxdb\"")
		found = found || imported
		if block, _, _ := strings.Cut(after, "\n)"); strings.Contains(block, "\n\n") {
			t.Errorf("%s: shop/events/outboxdb stands among the standard library's packages",
				f.Path)
		}
	}
	if !found {
		t.Error("no file imports shop/events/outboxdb")
	}
}

func TestAnOrdinaryEventIsShort(t *testing.T) {
	t.Parallel()
	for _, f := range emit(t, "orders", cases(t)["orders"]) {
		lines := bytes.Count(f.Content, []byte("\n"))
		if strings.HasSuffix(f.Path, "order_cancelled_v1.gen.go") && lines >= 50 {
			t.Errorf("%s has %d lines, want fewer than 50", f.Path, lines)
		}
	}
}

func TestEveryEngineOfTheLanguageHasAStore(t *testing.T) {
	t.Parallel()
	for _, engine := range catalogue.Engines() {
		c := hostile()
		c.Database.Engine = engine
		if _, err := golang.Emit(c, "example.com/x"); err != nil {
			t.Errorf("%s: %v", engine, err)
		}
	}
}

func TestTheScalarsGoldenHasEveryScalar(t *testing.T) {
	t.Parallel()
	said := map[catalogue.Scalar]bool{}
	for _, e := range cases(t)["scalars"].Events {
		for _, f := range e.Fields {
			said[f.Type.Scalar] = true
		}
	}
	for _, s := range catalogue.Scalars {
		if !said[s] {
			t.Errorf("testdata/scalars has no field of type %s", s)
		}
	}
}

// TestWhatAConsumerEmitsChangesNoHandler holds that the first emits of a consumer breaks none of
// its implementations.
func TestWhatAConsumerEmitsChangesNoHandler(t *testing.T) {
	t.Parallel()
	const name = "events/inventory_consumer.gen.go"
	c := cases(t)["orders"]
	emitting := emitted(t, emit(t, "orders", c), name)
	for _, consumer := range c.Consumers {
		if consumer.Name == "inventory" && len(consumer.Emits) == 0 {
			t.Fatal("inventory emits nothing")
		}
		consumer.Emits = nil
	}
	silent := emitted(t, emit(t, "orders", c), name)
	if emitting == silent {
		t.Fatal("what a consumer emits changes nothing at all")
	}
	if a, b := interfaceOf(t, emitting), interfaceOf(t, silent); a != b {
		t.Errorf("the interface changes with what the consumer emits:\n%s\n%s", a, b)
	}
}

// emitted returns the content of one of the files.
func emitted(t *testing.T, files []golang.File, path string) string {
	t.Helper()
	for _, f := range files {
		if f.Path == path {
			return string(f.Content)
		}
	}
	t.Fatalf("there is no %s", path)
	return ""
}

// interfaceOf returns the declaration of a file's interface.
func interfaceOf(t *testing.T, content string) string {
	t.Helper()
	_, from, found := strings.Cut(content, "Consumer interface {")
	methods, _, closed := strings.Cut(from, "\n}")
	if !found || !closed {
		t.Fatalf("no interface in:\n%s", content)
	}
	return methods
}

func TestOnlyACatalogueWithConsumersHasAnInbox(t *testing.T) {
	t.Parallel()
	for name, c := range cases(t) {
		var found bool
		for _, f := range emit(t, name, c) {
			found = found || strings.HasSuffix(f.Path, "/inbox.gen.go")
			if len(c.Consumers) == 0 && bytes.Contains(f.Content, []byte("runtime/inbox")) {
				t.Errorf("%s/%s imports the inbox", name, f.Path)
			}
		}
		if found != (len(c.Consumers) > 0) {
			t.Errorf("%s: with %d consumers, an inbox is generated: %t",
				name, len(c.Consumers), found)
		}
	}
}

func TestErrorsNameTheFile(t *testing.T) {
	t.Parallel()
	c := hostile()
	c.Events[0].GoName = "Not an identifier"
	c.Go.Dir = "some/dir"
	_, err := golang.Emit(c, "example.com/x")
	if err == nil || !strings.Contains(err.Error(), "some/dir/") {
		t.Errorf("got error %v, want one that names the file", err)
	}
}

func TestKeyOfATypeWithoutTextIsAnError(t *testing.T) {
	t.Parallel()
	for _, ref := range []catalogue.Ref{
		{Kind: catalogue.KindScalar, Scalar: catalogue.JSON},
		{Kind: catalogue.KindScalar, Scalar: catalogue.String, Optional: true},
		{Kind: catalogue.KindList, Elem: &catalogue.Ref{Scalar: catalogue.String}},
	} {
		c := hostile()
		key := &catalogue.Field{Name: "key", JSONName: "key", GoName: "Key", Type: ref}
		c.Events[0].Key, c.Events[0].Fields = []*catalogue.Field{key}, []*catalogue.Field{key}
		if _, err := golang.Emit(c, "example.com/x"); err == nil ||
			!strings.Contains(err.Error(), "key of ") {
			t.Errorf("%+v: got error %v, want one about the key", ref, err)
		}
	}
}

// cases returns the catalogues below testdata, and those that no YAML can say.
func cases(t *testing.T) map[string]*catalogue.Catalogue {
	t.Helper()
	files, err := filepath.Glob("testdata/*/outbox.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no catalogues: %v", err)
	}
	all := map[string]*catalogue.Catalogue{"hostile": hostile()}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c, list := catalogue.Parse(file, data)
		if c == nil {
			t.Fatalf("%s: %v", file, list)
		}
		all[filepath.Base(filepath.Dir(file))] = c
	}
	return all
}

func emit(t *testing.T, name string, c *catalogue.Catalogue) []golang.File {
	t.Helper()
	files, err := golang.Emit(c, importPath+name+"/events")
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return files
}
