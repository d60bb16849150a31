//go:build unix

package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/outboxgen/outboxgen/gen/output"
)

// said reads what a process prints until a line holds text.
func said(t *testing.T, lines *bufio.Scanner, text string) {
	t.Helper()
	var all []string
	for lines.Scan() {
		if all = append(all, lines.Text()); strings.Contains(lines.Text(), text) {
			return
		}
	}
	t.Fatalf("got %q, want a line with %q", all, text)
}

// start starts a process, whose errors can be read while it runs.
func start(t *testing.T, cmd *exec.Cmd) *bufio.Scanner {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return bufio.NewScanner(stderr)
}

func TestOneIsToldThatGoBuildsSQLC(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.put("go.mod",
		[]byte("module github.com/acme/orders\n\ntool github.com/sqlc-dev/sqlc/cmd/sqlc\n"))
	p.put("outbox.yaml", catalogueOf("a", 1))
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	p.put("bin/go", []byte("#!/bin/sh\nread -r version < '"+pipe+"'\necho \"$version\"\n"))
	if err := os.Chmod(filepath.Join(p.dir, "bin", "go"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := p.command("generate")
	cmd.Env = append(cmd.Env, "PATH="+filepath.Join(p.dir, "bin")+string(filepath.ListSeparator)+
		os.Getenv("PATH"))
	lines := start(t, cmd)
	said(t, lines,
		`waiting for "go tool sqlc": go is building sqlc, which takes some minutes the first time`)
	if err := os.WriteFile(pipe, []byte("v1.20.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	said(t, lines, "is version 1.20.0, which is older than")
}

// Two runs on one catalogue wait for each other, and say so; two that only read do not, nor do
// those on another catalogue of the repository.
func TestRunsOnOneCatalogueWaitForEachOther(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.put("outbox.yaml", catalogueOf("a", 2))
	p.put("other/outbox.yaml", catalogueOf("b", 2))
	p.run(exitOK, "generate", "--sqlc", realSQLC)
	want := p.files()
	delete(want, "other/outbox.yaml")
	held := p.hold(true)
	writes, reads := p.command("generate"), p.command("check")
	writesSay, readsSay := start(t, writes), start(t, reads)
	said(t, writesSay, "waiting for another run that is at work on outbox.yaml")
	said(t, readsSay, "waiting for another run that is at work on outbox.yaml")
	p.run(exitOK, "generate", "--sqlc", realSQLC, "other/outbox.yaml")
	held()
	for _, cmd := range []*exec.Cmd{writes, reads} {
		if err := cmd.Wait(); err != nil {
			t.Errorf("%q: %v", cmd.Args, err)
		}
	}
	held = p.hold(false)
	p.run(exitOK, "check")
	writes = p.command("generate")
	said(t, start(t, writes), "waiting for another run")
	if err := writes.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if _ = writes.Wait(); writes.ProcessState.ExitCode() != 130 {
		t.Errorf("got exit code %d of a run that was interrupted while it waited",
			writes.ProcessState.ExitCode())
	}
	held()
	if err := os.RemoveAll(filepath.Join(p.dir, "other")); err != nil {
		t.Fatal(err)
	}
	p.wantFiles(want)
}

// hold is another run that is at work on the project's catalogue until it is called.
func (p *project) hold(exclusive bool) func() {
	p.t.Helper()
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		p.t.Fatal(err)
	}
	release, err := output.Dir{Root: root}.Hold(context.Background(), exclusive, func() {})
	if err != nil {
		p.t.Fatal(err)
	}
	return func() { release(); _ = root.Close() }
}
