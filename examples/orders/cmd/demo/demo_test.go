package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/internal/testenv/postgresenv"
)

// beDemo is the environment variable that makes the test binary run the demo, so that the race
// detector covers all of it.
const beDemo = "OUTBOXGEN_TEST_BE_DEMO"

func TestMain(m *testing.M) {
	if os.Getenv(beDemo) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestDemo(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	output, err := io.ReadAll(d.stdout)
	if err := d.cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s%s", err, output, &d.stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	rest := string(output)
	for _, want := range []string{
		"Act 1. ", "✓ one event is lost for good, and one announces an order that does not exist",
		"Act 2. ", "✓ the event arrived, and the stock is reduced",
		"Act 3. ", "✓ no order was refused, and no event was lost",
		"Act 4. ", "✓ an order that was rolled back has no event",
		"Act 5. ", "✓ published twice with the same event id, ",
		"Act 6. ", "✓ published twice with the same event id, ",
		"Act 7. ", "✓ the duplicate reserved nothing, and sent on what the first delivery had " +
			"not got out",
		"In the end: 8 orders, whose events were published 10 times, applied 8 times, and took 8 " +
			"mugs.\n",
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("got no %q in the rest of the output:\n%s", want, rest)
		}
		rest = after
	}
	if bytes.ContainsRune(output, '\x1b') {
		t.Error("got colours where the output is no terminal")
	}
	d.checkNothingIsLeft(t)
}

func TestInterruptedDemoCleansUp(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	lines := bufio.NewScanner(d.stdout)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "Act 3.") {
		continue
	}
	if err := d.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		continue
	}
	if err := d.cmd.Wait(); err == nil || d.stderr.String() != "demo: interrupted\n" {
		t.Errorf("got error %v and on stderr:\n%s", err, &d.stderr)
	}
	d.checkNothingIsLeft(t)
}

type demo struct {
	cmd    *exec.Cmd
	temp   string // the directory of its temporary files
	stdout io.Reader
	stderr bytes.Buffer
}

func startDemo(t *testing.T) *demo {
	t.Helper()
	postgresenv.Shared(t) // skips the test if the demo would find no server
	d := &demo{temp: tempDir(t)}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	t.Cleanup(cancel)
	d.cmd = exec.CommandContext(ctx, os.Args[0])
	d.cmd.Env = append(os.Environ(), beDemo+"=1", "TMPDIR="+d.temp)
	d.cmd.Stderr = &d.stderr
	var err error
	if d.stdout, err = d.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return d
}

// tempDir returns a directory that the user PostgreSQL runs as may enter, too.
func tempDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, dir := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// checkNothingIsLeft looks for temporary files of servers and programs, and for processes that were
// started from that directory.
func (d *demo) checkNothingIsLeft(t *testing.T) {
	t.Helper()
	files, err := os.ReadDir(d.temp)
	if err != nil || len(files) > 0 {
		t.Errorf("got temporary files %v and error %v, want none", files, err)
	}
	executables, err := filepath.Glob("/proc/[0-9]*/exe") // on Linux
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range executables {
		if path, err := os.Readlink(link); err == nil && strings.HasPrefix(path, d.temp) {
			t.Errorf("%s is still running: %s", path, link)
		}
	}
}
