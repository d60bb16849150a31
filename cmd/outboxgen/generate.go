package main

import (
	"context"
	"fmt"
	"io"
)

const generateHelp = `
Compiles the catalogue FILE (by default outbox.yaml) and writes what differs from what is on disk. Files of an earlier run that
are no longer generated are removed; files that were not generated are neither overwritten nor removed. If anything is wrong,
nothing is written.

All of what it writes is to be committed, outboxgen.lock included.

sqlc compiles the SQL. It is run only if the SQL has changed, which events do not do, or once on a machine that has not seen
it make what is there.
`

func runGenerate(ctx context.Context, args []string, env Env) (int, error) {
	f := newFlags(env, "generate [FLAGS] [FILE]", generateHelp)
	c := newCompile(env, f)
	args, err := f.parse(args, 1)
	if err != nil {
		return exitFailed, err
	}
	result, changes, dir, err := c.run(ctx, args)
	if dir.Root != nil {
		defer func() { _ = dir.Close() }()
	}
	if err != nil {
		return exitFailed, err
	}
	if err := c.report(result.Diagnostics, result.Sources); err != nil {
		return exitFailed, err
	}
	if changes == nil {
		return exitProblems, nil
	}
	if err := changes.Apply(dir); err != nil {
		return exitFailed, err
	}
	out := c.progress()
	for _, w := range changes.All() {
		fmt.Fprintln(out, "wrote", dir.Display(w.Path))
	}
	for _, name := range changes.Remove {
		fmt.Fprintln(out, "removed", dir.Display(name))
	}
	return exitOK, nil
}

// progress is where to say what was done: not in the midst of JSON.
func (c *compile) progress() io.Writer {
	if c.format.value == "json" {
		return c.env.Stderr
	}
	return c.env.Stdout
}
