package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRelativePathsStartFromTheGivenDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module x.test/orders\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	do := func(args ...string) (code int, stdout, stderr string) {
		var out, err strings.Builder
		code = Do(t.Context(), args, Env{Dir: dir, Stdout: &out, Stderr: &err})
		return code, out.String(), err.String()
	}
	if code, out, err := do("init"); code != exitOK ||
		!strings.HasPrefix(out, "wrote outbox.yaml\n") {
		t.Fatalf("init: got %d, %q, %q", code, out, err)
	}
	if code, out, err := do("generate", "--sqlc", realSQLC); code != exitOK ||
		!strings.Contains(out, "wrote outboxgen.lock\n") {
		t.Fatalf("generate: got %d, %q, %q", code, out, err)
	}
	if code, out, err := do("check", "--sqlc", "./none"); code != exitOK || out+err != "" {
		t.Errorf("check: got %d, %q, %q", code, out, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "internal", "events", "outbox.gen.go")); err != nil {
		t.Error(err)
	}
}
