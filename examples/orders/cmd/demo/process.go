package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a child of the demo.
type process struct {
	name  string
	cmd   *exec.Cmd
	log   *log
	ended chan struct{}
	err   error // how it ended
}

// start starts a process, which gets SIGTERM when the demo ends.
func (w *world) start(name, broker, program string, args ...string) (*process, error) {
	cmd := exec.CommandContext(w.ctx, program, args...)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+w.database, "NATS_URL="+broker)
	cmd.SysProcAttr = dieWithParent()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second // then SIGKILL
	p := &process{name: name, cmd: cmd, log: &log{}, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	w.processes = append(w.processes, p)
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// kill ends the process with SIGKILL, so that it cannot clean up.
func (p *process) kill() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s ended before it was killed: %w", p.name, p.err)
	default:
	}
	if err := p.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.ended
	return nil
}

// stop ends the process with SIGTERM, so that it finishes its work first.
func (p *process) stop(ctx context.Context) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	select {
	case <-p.ended:
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(patience):
		return fmt.Errorf("%s has not ended %v after SIGTERM", p.name, patience)
	}
	if p.err != nil {
		return fmt.Errorf("%s did not end well after SIGTERM: %w", p.name, p.err)
	}
	return nil
}

// endProcesses waits until no child process is left.
func (w *world) endProcesses() {
	w.end()
	for _, p := range w.processes {
		<-p.ended
	}
}

// logs returns the last lines of each process.
func (w *world) logs() string {
	var b strings.Builder
	for _, p := range w.processes {
		fmt.Fprintf(&b, "--- %s (pid %d)\n%s", p.name, p.cmd.Process.Pid, p.log.tail(20))
	}
	return b.String()
}

// log collects what a process writes.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) contains(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.text.Bytes(), []byte(s))
}

func (l *log) tail(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.SplitAfter(l.text.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "")
}
