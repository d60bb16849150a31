package golang_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/golang"
)

// constantFile is the same for every catalogue with consumers, and for every one without, but for a
// few words, so that two cases have a golden file of it. The examples' compile_test.go makes the
// others' of these.
const constantFile = "events/store.gen.go"

// constantCase returns which case has the golden file of constantFile for a catalogue.
func constantCase(c *catalogue.Catalogue) string {
	if len(c.Consumers) > 0 {
		return "orders"
	}
	return "minimal"
}

// withGolden returns the files of a case that have a golden file.
func withGolden(name string, files []golang.File) []golang.File {
	return slices.DeleteFunc(files, func(f golang.File) bool {
		return f.Path == constantFile && name != "orders" && name != "minimal"
	})
}

// write replaces the golden files of a case.
func write(t *testing.T, name string, files []golang.File) {
	t.Helper()
	for _, old := range goldens(t, name) {
		if err := os.Remove(filepath.Join("testdata", name, old)); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range files {
		path := filepath.Join("testdata", name, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// goldens returns the golden files of a case, as they are called in Emit's result.
func goldens(t *testing.T, name string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", name, "events", "*.gen.go"))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range files {
		files[i] = "events/" + filepath.Base(f)
	}
	return sorted(files)
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }
