package main

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/outboxgen/outboxgen/gen"
	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/output"
)

const checkHelp = `
Compiles the catalogue FILE (by default outbox.yaml) and compares the result with what is on disk,
for continuous integration. It writes nothing. The exit code is 1 if a generated file differs, is
missing or is left over.

If sqlc is missing or fails, the files that it would make are compared with the sums in
outboxgen.lock. The exit code is then 2 if nothing differs: files and sums may have been edited
together.
`

func runCheck(ctx context.Context, args []string, env Env) (int, error) {
	f := newFlags(env, "check [FLAGS] [FILE]", checkHelp)
	c := newCompile(env, f)
	args, err := f.parse(args, 1)
	if err != nil {
		return exitFailed, err
	}
	s, err := c.open(ctx, args, false)
	if err != nil {
		return exitFailed, err
	}
	defer s.close()
	return s.check(ctx)
}

// check compiles the catalogue and says what differs, and then what it could not find out.
func (s *session) check(ctx context.Context) (int, error) {
	result, failed := s.generate(ctx, func() (string, error) { return "", nil })
	changes, inTheWay := output.Compare(s.Dir, result.Known)
	stale := changes != nil && ctx.Err() == nil &&
		describe(&result, changes, s.Dir, path.Base(s.file))
	if err := s.report(result.Diagnostics, result.Sources); err != nil {
		return exitFailed, err
	}
	if err := errors.Join(failed, inTheWay); err != nil {
		if stale && inTheWay == nil {
			return exitProblems, err
		}
		return exitFailed, err
	}
	if stale && s.format.value == "text" {
		fmt.Fprintf(s.env.Stderr, "Run \"outboxgen generate%s\" and commit what it changes.\n",
			fileArgument(s.file))
	}
	if result.Diagnostics.HasErrors() {
		return exitProblems, nil
	}
	return exitOK, nil
}

// describe adds a diagnostic for each file that generate would write or remove, and reports whether
// there are any.
func describe(r *gen.Result, changes *output.Changes, dir output.Dir, catalogue string) bool {
	before := len(r.Diagnostics)
	for _, w := range changes.All() {
		pos := diag.Pos{File: dir.Display(w.Path), Line: w.Line()}
		message := "differs from what %s generates"
		switch {
		case w.Missing():
			message = "missing: %s generates it"
		case w.BySum():
			message = "differs from what was generated of %s the last time"
		}
		r.Diagnostics.Add(diag.New(diag.OutputStale, pos, message, catalogue))
		r.Sources[pos.File] = w.Old
	}
	for _, name := range changes.Remove() {
		pos := diag.Pos{File: dir.Display(name)}
		r.Diagnostics.Add(diag.New(diag.OutputStale, pos,
			"left over: %s does not generate it any more", catalogue))
	}
	if dir.Interrupted() {
		pos := diag.Pos{File: dir.Display(output.StageName)}
		r.Diagnostics.Add(diag.New(diag.OutputStale, pos,
			"left behind by a run that was interrupted: generate removes it"))
	}
	return len(r.Diagnostics) > before
}
