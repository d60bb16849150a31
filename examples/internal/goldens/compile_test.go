package goldens_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	module  = "../.."
	goldens = module + "/../gen/golang/testdata"
	queries = module + "/orders/internal/events/outboxdb" // its Go is the same for every catalogue
)

// TestGoldensCompileAndPass shows that all golden files compile and pass go vet, and that the tests
// among them pass. They stand in another module, so that go test does not notice when they change,
// unless it is told -count=1.
func TestGoldensCompileAndPass(t *testing.T) {
	t.Parallel()
	dir := compilable(t, "*")
	for _, command := range []string{"vet", "test"} {
		cmd := exec.Command("go", command, "./...")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("go %s: %v\n%s", command, err, out)
		}
	}
}

// mixed is a program with two catalogues, which enqueues an event of one of them.
const mixed = `package main

import (
	"context"

	"github.com/jackc/pgx/v5"
	minimal "github.com/outboxgen/outboxgen/examples/internal/goldens/minimal/events"
	orders "github.com/outboxgen/outboxgen/examples/internal/goldens/orders/events"
)

func enqueue(
	ctx context.Context, tx pgx.Tx, ofMinimal *minimal.Store, ofOrders *orders.Store,
) error {
	_, err := %s.Enqueue(ctx, tx, minimal.DoorOpenedV1{})
	return err
}

func main() { _ = enqueue }
`

// TestTwoCataloguesDoNotMix builds a program that hands an event to the store of its own catalogue,
// and one that hands it to that of the other.
func TestTwoCataloguesDoNotMix(t *testing.T) {
	t.Parallel()
	dir := compilable(t, "minimal", "orders")
	program := filepath.Join(dir, "main.go")
	for store, want := range map[string]string{
		"ofMinimal": "",
		"ofOrders":  "DoorOpenedV1 does not implement",
	} {
		if err := os.WriteFile(program, fmt.Appendf(nil, mixed, store), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("go", "vet", ".")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if (err == nil) != (want == "") || !strings.Contains(string(out), want) {
			t.Errorf("%s: got %v, want %q in:\n%s", store, err, want, out)
		}
	}
}

// compilable returns a module with the golden files of the cases that match patterns.
func compilable(t *testing.T, cases ...string) string {
	t.Helper()
	dir := t.TempDir()
	copyModuleFiles(t, dir)
	for _, name := range cases {
		for _, events := range glob(t, filepath.Join(goldens, name, "events")) {
			to := filepath.Join(dir, "internal", "goldens", filepath.Base(filepath.Dir(events)),
				"events")
			copyFiles(t, filepath.Join(to, "outboxdb"), glob(t, filepath.Join(queries, "*.go")))
			copyFiles(t, to, glob(t, filepath.Join(events, "*.go")))
			writeStore(t, to)
		}
	}
	return dir
}

var packageClause = regexp.MustCompile(`(?m)^package .*$`)

// writeStore writes the store of a case, which differs from those of the other cases with or
// without consumers in its package and imports only. A test of gen/golang checks that.
func writeStore(t *testing.T, dir string) {
	t.Helper()
	read := func(file string) []byte {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	of := "minimal"
	if _, err := os.Stat(filepath.Join(dir, "inbox.gen.go")); err == nil {
		of = "orders"
	}
	store := read(filepath.Join(goldens, of, "events", "store.gen.go"))
	clause := packageClause.Find(read(filepath.Join(dir, "outbox.gen.go")))
	store = packageClause.ReplaceAll(store, clause)
	name := filepath.Base(filepath.Dir(dir))
	store = bytes.ReplaceAll(store, []byte("/goldens/"+of+"/"), []byte("/goldens/"+name+"/"))
	if err := os.WriteFile(filepath.Join(dir, "store.gen.go"), store, 0o600); err != nil {
		t.Fatal(err)
	}
}

var relative = regexp.MustCompile(`(?m)=> (\.\S*)`)

// copyModuleFiles makes dir a module with the requirements of this one.
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
