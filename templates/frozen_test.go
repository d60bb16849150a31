package templates_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/outboxgen/outboxgen/templates"
)

var update = flag.Bool("update", false, "add new migrations to "+sums)

// sums is in the format of sha256sum.
const sums = "migrations.sha256"

// TestReleasedMigrationsAreFrozen holds the hash of every migration. A database has run it, and a
// repository has committed what it made: whatever is to change becomes the next version of its
// feature. A migration that was never released may change; delete its line first.
func TestReleasedMigrationsAreFrozen(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(templates.FS, "*/migrations/*/*.tmpl")
	if err != nil || len(names) == 0 {
		t.Fatalf("got %d migrations and error %v", len(names), err)
	}
	data, err := os.ReadFile(sums)
	if err != nil {
		t.Fatal(err)
	}
	frozen := map[string]string{}
	for line := range strings.Lines(string(data)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		frozen[name] = sum
	}
	var all strings.Builder
	for _, name := range names {
		text, err := fs.ReadFile(templates.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		sum := fmt.Sprintf("%x", sha256.Sum256(text))
		switch {
		case frozen[name] == "" && !*update:
			t.Errorf("%s is new: go test ./templates -update freezes it", name)
		case frozen[name] != "" && frozen[name] != sum:
			t.Errorf("%s was changed after it was released: undo that, and add the next version "+
				"of its feature; if it was not released, delete its line in %s, "+
				"and go test ./templates -update", name, sums)
		}
		fmt.Fprintf(&all, "%s  %s\n", sum, name)
		delete(frozen, name)
	}
	for name := range frozen {
		t.Errorf("%s was released, and is gone", name)
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(sums, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
