//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/gen/output"
)

// catalogueOf returns a catalogue of n events, whose names and migrations differ by variant.
func catalogueOf(variant string, n int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `outboxgen: 1
service: shop/orders
go: {package: events, dir: internal/events}
database: {engine: postgresql}
migrations: {dir: %s/migrations, format: plain}
defaults: {topic: shop.orders}
events:
`, variant)
	for i := range n {
		kind := variant
		if i%2 == 0 {
			kind = "common"
		}
		fmt.Fprintf(&b, "  %s%d.changed@1: {doc: Of %s., payload: {id: uuid}}\n", kind, i, variant)
	}
	return []byte(b.String())
}

// project is a module with a catalogue, in which processes of outboxgen run.
type project struct {
	t   *testing.T
	dir string
}

func newProject(t *testing.T) *project {
	t.Helper()
	p := &project{t: t, dir: t.TempDir()}
	p.put("go.mod", []byte("module github.com/acme/orders\n"))
	return p
}

func (p *project) put(name string, data []byte) {
	p.t.Helper()
	at := filepath.Join(p.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755),
		os.WriteFile(at, data, 0o600)); err != nil {
		p.t.Fatal(err)
	}
}

// command is a process of outboxgen that has not been started.
func (p *project) command(args ...string) *exec.Cmd {
	cmd := exec.Command("outboxgen", args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	return cmd
}

// run runs outboxgen, which must end with a code, and returns what it printed.
func (p *project) run(code int, args ...string) string {
	p.t.Helper()
	cmd := p.command(args...)
	out, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		p.t.Fatalf("outboxgen %q: got exit code %d (%v), want %d\n%s", args, got, err, code, out)
	}
	return string(out)
}

// files returns the files' contents by path, without the catalogue and go.mod.
func (p *project) files() map[string]string {
	p.t.Helper()
	files := map[string]string{}
	root := os.DirFS(p.dir)
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || name == "outbox.yaml" || name == "go.mod" {
			return err
		}
		data, err := fs.ReadFile(root, name)
		files[name] = string(data)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return files
}

// wantFiles compares the files with those of a run that was not interrupted.
func (p *project) wantFiles(want map[string]string) {
	p.t.Helper()
	got := p.files()
	for name, data := range want {
		if have, ok := got[name]; !ok || have != data {
			p.t.Errorf("%s: there: %t, and it is not what a whole run writes", name, ok)
		}
		delete(got, name)
	}
	for name := range got {
		p.t.Errorf("%s: left over", name)
	}
}

// wantHidden wants every file that neither run writes to be one that git passes over.
func (p *project) wantHidden(runs ...map[string]string) {
	p.t.Helper()
	for name := range p.files() {
		known := false
		for _, files := range runs {
			_, ok := files[name]
			known = known || ok
		}
		if known {
			continue
		}
		above, _, staged := strings.Cut(name, output.StageName+"/")
		ignore := filepath.Join(p.dir, above, output.StageName, ".gitignore")
		data, err := os.ReadFile(ignore)
		if !staged || name != above+output.StageName+"/.gitignore" &&
			(err != nil || !bytes.HasSuffix(data, []byte("\n*\n"))) {
			p.t.Errorf("%s: git would see it: %v", name, err)
		}
	}
}

// A run may be killed at any moment: the next one completes its work, whether the catalogue is the
// same or another one by then, and nothing is left over.
func TestTheNextRunCompletesOneThatWasKilled(t *testing.T) {
	t.Parallel()
	const events = 30
	whole := map[string]map[string]string{}
	for _, variant := range []string{"a", "b"} {
		p := newProject(t)
		p.put("outbox.yaml", catalogueOf(variant, events))
		p.run(exitOK, "generate", "--sqlc", realSQLC)
		whole[variant] = p.files()
	}
	p := newProject(t)
	p.put("outbox.yaml", catalogueOf("a", events))
	p.run(exitOK, "generate", "--sqlc", realSQLC)
	for round := range 9 {
		from, to := "a", "b"
		if round%2 == 1 {
			from, to = to, from
		}
		p.put("outbox.yaml", catalogueOf(to, events))
		inMidst := p.kill()
		p.wantHidden(whole[from], whole[to])
		if inMidst {
			if said := p.run(exitProblems, "check"); !strings.Contains(said,
				output.StageName+": error: left behind by a run that was interrupted") {
				t.Errorf("check does not say that a run was interrupted:\n%s", said)
			}
		}
		if round%3 == 2 { // somebody has second thoughts
			p.put("outbox.yaml", catalogueOf(from, events))
			p.run(exitOK, "generate")
			p.wantFiles(whole[from])
			p.put("outbox.yaml", catalogueOf(to, events))
		}
		p.run(exitOK, "generate", "--sqlc", realSQLC)
		p.run(exitOK, "check")
		p.wantFiles(whole[to])
		if t.Failed() {
			t.Fatalf("in round %d, killed in the midst of it: %t", round, inMidst)
		}
	}
}

// kill starts generate and kills it at some moment after it has begun to write. It reports whether
// it was still at it.
func (p *project) kill() bool {
	p.t.Helper()
	cmd := p.command("generate", "--sqlc", realSQLC)
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	stage := filepath.Join(p.dir, output.StageName)
	for left := rand.IntN(400); left > 0; {
		if _, err := os.Lstat(stage); err == nil {
			left--
		}
		select {
		case <-ended:
			left = 0
		default:
		}
	}
	_ = cmd.Process.Kill()
	<-ended
	_, err := os.Lstat(stage)
	return err == nil
}

// fakeSQLC is a program that says its process id on a pipe, starts another one and then waits for
// ever.
func (p *project) fakeSQLC(pipe string) string {
	p.t.Helper()
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		p.t.Fatal(err)
	}
	text := "#!/bin/sh\n[ \"$1\" = version ] && echo v1.31.1 && exit\nsh -c 'sleep 1000' & echo " +
		"$$ $! > '" + pipe + "'\nwait\n"
	p.put("bin/sqlc", []byte(text))
	at := filepath.Join(p.dir, "bin", "sqlc")
	if err := os.Chmod(at, 0o700); err != nil {
		p.t.Fatal(err)
	}
	return at
}

// A signal ends the run with the code that shells expect, nothing is changed, and neither sqlc nor
// what sqlc has started keeps running.
func TestASignalEndsARunAndAllThatItStarted(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		signal  syscall.Signal
		command string
		code    int
	}{
		{syscall.SIGINT, "generate", 130}, {syscall.SIGTERM, "generate", 143},
		{syscall.SIGHUP, "generate", 129},
		{syscall.SIGINT, "check", 130}, {syscall.SIGTERM, "check", 143},
	} {
		if signal.Ignored(test.signal) {
			continue // the tests run under nohup, and a run keeps on running then, too
		}
		t.Run(test.signal.String()+" "+test.command, func(t *testing.T) {
			t.Parallel()
			p := newProject(t)
			p.put("outbox.yaml", catalogueOf("a", 1))
			pipe := filepath.Join(t.TempDir(), "pipe")
			cmd := p.command(test.command, "--sqlc", p.fakeSQLC(pipe))
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			started, err := os.ReadFile(pipe) // blocks until sqlc is at work
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Signal(test.signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != test.code ||
				!strings.Contains(said.String(), "nothing was changed") {
				t.Errorf("got exit code %d, want %d, and\n%s", got, test.code, &said)
			}
			var head, child int
			if _, err := fmt.Sscan(string(started), &head, &child); err != nil {
				t.Fatal(err)
			}
			for _, pid := range []int{head, child} {
				if !gone(t.Context(), pid) {
					t.Errorf("process %d of %q is still running", pid, started)
				}
			}
			for name := range p.files() {
				if name != "bin/sqlc" {
					t.Errorf("%s: left over", name)
				}
			}
		})
	}
}

// gone waits until a process has ended. One that nobody has waited for yet has ended as well.
func gone(ctx context.Context, pid int) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		out, err := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(pid)).Output()
		if err != nil || strings.HasPrefix(strings.TrimSpace(string(out)), "Z") {
			return true
		}
	}
	return false
}
