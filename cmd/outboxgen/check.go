package main

import (
	"context"
	"fmt"
	"path"

	"github.com/outboxgen/outboxgen/gen"
	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/output"
)

const checkHelp = `
Compiles the catalogue FILE (by default outbox.yaml) and compares: exit code 1 if a generated file differs, is missing or is left
over. Nothing is written. For continuous integration.
`

func runCheck(ctx context.Context, args []string, env Env) (int, error) {
	f := newFlags(env, "check [FLAGS] [FILE]", checkHelp)
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
	stale := changes != nil && describe(&result, changes, dir, path.Base(c.file))
	if err := c.report(result.Diagnostics, result.Sources); err != nil {
		return exitFailed, err
	}
	if stale && c.format.value == "text" {
		fmt.Fprintf(env.Stderr, "Run \"outboxgen generate%s\" and commit what it changes.\n", fileArgument(c.file))
	}
	if result.Diagnostics.HasErrors() {
		return exitProblems, nil
	}
	return exitOK, nil
}

// describe adds a diagnostic for each file that generate would write or remove, and reports whether there are any.
func describe(r *gen.Result, changes *output.Changes, dir output.Dir, catalogue string) bool {
	before := len(r.Diagnostics)
	for _, w := range changes.All() {
		pos := diag.Pos{File: dir.Display(w.Path), Line: w.Line()}
		message := "differs from what %s generates"
		if w.Missing() {
			message = "missing: %s generates it"
		}
		r.Diagnostics.Add(diag.New(diag.OutputStale, pos, message, catalogue))
		r.Sources[pos.File] = w.Old
	}
	for _, name := range changes.Remove {
		pos := diag.Pos{File: dir.Display(name)}
		r.Diagnostics.Add(diag.New(diag.OutputStale, pos, "left over: %s does not generate it any more", catalogue))
	}
	return len(r.Diagnostics) > before
}
