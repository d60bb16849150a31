package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/outboxgen/outboxgen/gen/output"
)

const generateHelp = `
Compiles the catalogue FILE (by default outbox.yaml) and writes the files that differ from those on
disk. It removes files of an earlier run that are no longer generated, and neither overwrites nor
removes files that were not generated. If anything is wrong, it writes nothing. If a run is killed,
the next one completes its work; two runs at once wait for each other.

Commit everything that it writes, outboxgen.lock included.

sqlc compiles the SQL. It runs only if the SQL has changed, which events do not cause, or once on a
machine on which it has not made the files that are there.
`

func runGenerate(ctx context.Context, args []string, env Env) (int, error) {
	f := newFlags(env, "generate [FLAGS] [FILE]", generateHelp)
	c := newCompile(env, f)
	args, err := f.parse(args, 1)
	if err != nil {
		return exitFailed, err
	}
	s, err := c.open(ctx, args, true)
	if err != nil {
		return exitFailed, err
	}
	defer s.close()
	return s.write(ctx)
}

// write compiles the catalogue and writes what differs.
func (s *session) write(ctx context.Context) (code int, err error) {
	if err := s.Clean(); err != nil {
		return exitFailed, err
	}
	defer func() {
		if clean := s.Clean(); clean != nil {
			code, err = exitFailed, errors.Join(err, clean)
		}
	}()
	result, err := s.generate(ctx, s.Scratch)
	if err := errors.Join(s.report(result.Diagnostics, result.Sources), err); err != nil {
		return exitFailed, err
	}
	if result.Diagnostics.HasErrors() {
		return exitProblems, nil
	}
	changes, err := output.Compare(s.Dir, result.Plan)
	if err == nil {
		err = changes.Apply(ctx, s.Dir)
	}
	if err != nil {
		return exitFailed, err
	}
	out := s.progress()
	for _, w := range changes.All() {
		fmt.Fprintln(out, "wrote", s.Display(w.Path))
	}
	for _, name := range changes.Remove() {
		fmt.Fprintln(out, "removed", s.Display(name))
	}
	return exitOK, nil
}

// progress returns the writer for messages about what was done: standard error if diagnostics are
// printed as JSON.
func (c *compile) progress() io.Writer {
	if c.format.value == "json" {
		return c.env.Stderr
	}
	return c.env.Stdout
}
