// Package examples_test checks that the generated code of the examples is up to date.
package examples_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestGeneratedCodeIsUpToDate(t *testing.T) {
	t.Parallel()
	var catalogues []string
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "outbox.yaml" {
			catalogues = append(catalogues, path)
		}
		return err
	})
	if err != nil || len(catalogues) < 3 {
		t.Fatalf("got catalogues %v and error %v, want three at least", catalogues, err)
	}
	for _, catalogue := range catalogues {
		out, err := exec.CommandContext(t.Context(), "go", "run",
			"github.com/outboxgen/outboxgen/cmd/outboxgen", "check",
			filepath.FromSlash(catalogue)).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", catalogue, err, out)
		}
	}
}
