package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/sql"
)

// TestSQLCCompilesEveryExample holds the sqlc.yaml at the top to its promise: it lists every
// example's SQL, with the options that the generator uses, and plain sqlc makes of it what is
// committed.
func TestSQLCCompilesEveryExample(t *testing.T) {
	t.Parallel()
	top, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(top, "sqlc.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dirs := outboxdbDirs(t, top)
	for _, dir := range dirs {
		if !strings.Contains(string(text), sqlcEntry(t, dir)) {
			t.Errorf("sqlc.yaml lacks:\n%s", sqlcEntry(t, dir))
		}
	}
	if n := strings.Count(string(text), "- engine:"); n != len(dirs) {
		t.Errorf("sqlc.yaml has %d entries for %d examples: %q", n, len(dirs), dirs)
	}
	cmd := exec.Command(realSQLC, "diff", "--file", filepath.Join(top, "sqlc.yaml"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("sqlc diff: %v\n%s", err, out)
	}
}

// outboxdbDirs returns the directories of generated SQL, relative to the top, with slashes.
func outboxdbDirs(t *testing.T, top string) []string {
	t.Helper()
	var dirs []string
	err := fs.WalkDir(os.DirFS(top), "examples", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == sql.Package {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil || len(dirs) == 0 {
		t.Fatalf("got %d directories and error %v", len(dirs), err)
	}
	return dirs
}

// sqlcEntry is what stands in a sqlc.yaml beside the SQL, for one at the top.
func sqlcEntry(t *testing.T, dir string) string {
	t.Helper()
	f, err := sql.Render(catalogue.Database{Engine: "postgresql"}, "shop")
	if err != nil {
		t.Fatal(err)
	}
	_, entry, _ := strings.Cut(string(f.Config), "sql:\n")
	return strings.NewReplacer("schema.sql", dir+"/schema.sql", "queries.sql", dir+"/queries.sql",
		"out: .", "out: "+dir).Replace(entry)
}
