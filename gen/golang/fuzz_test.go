package golang_test

import (
	"bytes"
	"go/format"
	"os"
	"path/filepath"
	"testing"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/golang"
)

// FuzzEmit looks for catalogues that are accepted and cannot be generated, or not twice the same,
// or not as gofmt has it.
func FuzzEmit(f *testing.F) {
	paths, err := filepath.Glob("testdata/*/outbox.yaml")
	if err != nil || len(paths) == 0 {
		f.Fatalf("got %q, %v", paths, err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, _ := catalogue.Parse("outbox.yaml", data)
		if c == nil {
			return
		}
		files, err := golang.Emit(c, "x.test/events")
		if err != nil {
			t.Fatal(err)
		}
		again, err := golang.Emit(c, "x.test/events")
		if err != nil || len(again) != len(files) {
			t.Fatalf("a second time: %d files and not %d, %v", len(again), len(files), err)
		}
		seen := map[string]bool{}
		for i, file := range files {
			if seen[file.Path] {
				t.Errorf("%s is made twice", file.Path)
			}
			seen[file.Path] = true
			if !bytes.Equal(file.Content, again[i].Content) {
				t.Errorf("%s differs the second time", file.Path)
			}
			if formatted, err := format.Source(file.Content); err != nil ||
				!bytes.Equal(formatted, file.Content) {
				t.Errorf("%s is not as gofmt has it: %v", file.Path, err)
			}
		}
	})
}
