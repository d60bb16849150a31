// Package sqlc runs sqlc as a child process: its library exits the process on an error and is
// several hundred megabytes of modules.
package sqlc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// What is called, which version this is tested with, and the oldest that it accepts.
const (
	pkg           = "github.com/sqlc-dev/sqlc/cmd/sqlc"
	TestedVersion = "v1.31.1"
	OldestVersion = "v1.29.0"
)

// Command is a way to start sqlc.
type Command struct {
	Args    []string      // the program and what comes before sqlc's own arguments
	Dir     string        // the directory of the process; "" for the current one
	Env     []string      // added to the environment
	Timeout time.Duration // of one run
	Builds  bool          // go may have to build sqlc first
	// Notice, unless it is nil, is called once if a run takes long because go may be building sqlc.
	Notice func()
}

// How long sqlc may take: it needs a second, or minutes if the go command has to build it first.
const (
	runTimeout   = time.Minute
	buildTimeout = 15 * time.Minute
	noticeDelay  = time.Second     // before Notice is called
	grace        = 3 * time.Second // between an interrupt and the end by force
)

// String returns the command as one would type it.
func (c Command) String() string { return strings.Join(c.Args, " ") }

// Compile runs sqlc on files in a new directory within temp, or the system's directory for
// temporary files if temp is "". It returns the Go files that sqlc made, by name. Among the input
// is a sqlc.yaml that puts them beside it. Errors in the SQL are a *CompileError. If the context
// ends, so do sqlc and all that it has started.
func (c Command) Compile(
	ctx context.Context, temp string, files map[string][]byte,
) (map[string][]byte, error) {
	if err := c.checkVersion(ctx); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(temp, "outboxgen-sqlc-")
	if err != nil {
		return nil, fmt.Errorf("sqlc: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return nil, fmt.Errorf("sqlc: %w", err)
		}
	}
	if _, err := c.run(ctx, "generate", "--file", filepath.Join(dir, "sqlc.yaml")); err != nil {
		return nil, asCompileError(err)
	}
	return readGo(dir)
}

func readGo(dir string) (map[string][]byte, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("sqlc: %w", err)
	}
	made := map[string][]byte{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("sqlc: %w", err)
		}
		made[filepath.Base(path)] = data
	}
	if len(made) == 0 {
		return nil, errors.New("sqlc: it succeeded, but made no Go file")
	}
	return made, nil
}

// run starts sqlc and returns its output. A failure's error is a *runError.
func (c Command) run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	argv := append(c.Args[:len(c.Args):len(c.Args)], args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = c.Dir
	cmd.Env = append(os.Environ(), c.Env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	inGroup(cmd)
	cmd.Cancel = func() error { return interruptGroup(cmd) }
	cmd.WaitDelay = grace
	err := c.wait(cmd)
	if ctx.Err() != nil {
		killGroup(cmd)
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", fmt.Errorf("sqlc: %q took longer than %v", c, c.Timeout)
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", &runError{command: c.String(), stderr: stderr.String(), err: err}
	}
	return stdout.String(), nil
}

// wait runs a command, and gives notice if that takes long and go may be building sqlc.
func (c Command) wait(cmd *exec.Cmd) error {
	if !c.Builds || c.Notice == nil {
		return cmd.Run()
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Run() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(noticeDelay):
		c.Notice()
		return <-ended
	}
}

// runError is a run of sqlc that failed.
type runError struct {
	command, stderr string
	err             error
}

func (e *runError) Error() string {
	said := strings.TrimSpace(e.stderr)
	if said == "" {
		return fmt.Sprintf("sqlc: %q: %v", e.command, e.err)
	}
	return fmt.Sprintf("sqlc: %q: %v\n%s", e.command, e.err, said)
}

func (e *runError) Unwrap() error { return e.err }
