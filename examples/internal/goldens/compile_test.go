package goldens_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

const (
	module  = "../.."
	goldens = module + "/../gen/golang/testdata"
	queries = module + "/orders/internal/events/outboxdb" // the same in Go for every catalogue
)

// What a catalogue can say compiles, and is clean under go vet; the tests among the golden files pass. As these stand in
// another module, go test takes an old result for good after they have changed, unless it is told -count=1.
func TestGoldensCompileAndPass(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	copyModuleFiles(t, dir)
	for _, events := range glob(t, filepath.Join(goldens, "*", "events")) {
		to := filepath.Join(dir, "internal", "goldens", filepath.Base(filepath.Dir(events)), "events")
		copyFiles(t, filepath.Join(to, "outboxdb"), glob(t, filepath.Join(queries, "*.go")))
		copyFiles(t, to, glob(t, filepath.Join(events, "*.go")))
		writeStore(t, to)
	}
	for _, command := range []string{"vet", "test"} {
		cmd := exec.Command("go", command, "./...")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("go %s: %v\n%s", command, err, out)
		}
	}
}

var packageClause = regexp.MustCompile(`(?m)^package .*$`)

// writeStore makes the store of a case, which it shares with all others except for its package and
// its imports. A test of gen/golang holds it to that.
func writeStore(t *testing.T, dir string) {
	t.Helper()
	read := func(file string) []byte {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	store := read(filepath.Join(goldens, "orders", "events", "store.gen.go"))
	clause := packageClause.Find(read(filepath.Join(dir, "outbox.gen.go")))
	store = packageClause.ReplaceAll(store, clause)
	name := filepath.Base(filepath.Dir(dir))
	store = bytes.ReplaceAll(store, []byte("/goldens/orders/"), []byte("/goldens/"+name+"/"))
	if err := os.WriteFile(filepath.Join(dir, "store.gen.go"), store, 0o600); err != nil {
		t.Fatal(err)
	}
}

var relative = regexp.MustCompile(`(?m)=> (\.\S*)`)

// copyModuleFiles makes dir a module that requires what this one does.
func copyModuleFiles(t *testing.T, dir string) {
	t.Helper()
	copyFiles(t, dir, []string{filepath.Join(module, "go.mod"), filepath.Join(module, "go.sum")})
	file := filepath.Join(dir, "go.mod")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data = relative.ReplaceAllFunc(data, func(match []byte) []byte {
		path, err := filepath.Abs(filepath.Join(module, string(relative.FindSubmatch(match)[1])))
		if err != nil {
			t.Fatal(err)
		}
		return []byte("=> " + path)
	})
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func copyFiles(t *testing.T, dir string, files []string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(file)), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: found %d files, %v", pattern, len(files), err)
	}
	return files
}
