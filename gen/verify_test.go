package gen_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"testing/fstest"

	"github.com/outboxgen/outboxgen/gen"
	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/output"
	"github.com/outboxgen/outboxgen/gen/sqlc"
)

// onDisk returns the input of a second run, after a first one was written; sqlc makes of it what
// made says.
func onDisk(
	t *testing.T, made func(context.Context, map[string][]byte) (map[string][]byte, error),
) gen.Input {
	t.Helper()
	in := input(whole, compiled)
	r, err := gen.Generate(t.Context(), in)
	if err != nil || r.Diagnostics.HasErrors() {
		t.Fatalf("got error %v and %v", err, r.Diagnostics)
	}
	disk := fstest.MapFS{"outboxgen.lock": {Data: r.Plan.Lock.Data}}
	for _, f := range r.Plan.Files {
		disk[f.Path] = &fstest.MapFile{Data: f.Data}
	}
	in.Dir, in.SQLC = disk, made
	return in
}

const compiledFile = "internal/events/outboxdb/db.go"

// planned is what a run wants a file to be.
func planned(t *testing.T, p output.Plan, path string) string {
	t.Helper()
	for _, f := range p.Files {
		if f.Path == path {
			return string(f.Data)
		}
	}
	t.Fatalf("%s is not in the plan", path)
	return ""
}

func TestWhatSQLCMadeIsMadeAgainToCompare(t *testing.T) {
	t.Parallel()
	other := map[string][]byte{"db.go": []byte("// " + output.MarkerSQLC + "\n\npackage other\n")}
	in := onDisk(t, func(context.Context, map[string][]byte) (map[string][]byte, error) {
		return maps.Clone(other), nil
	})
	r, err := gen.Generate(t.Context(), in)
	if err != nil || len(r.Diagnostics) > 0 {
		t.Fatalf("got error %v and %v", err, r.Diagnostics)
	}
	if got := planned(t, r.Plan, compiledFile); got != string(other["db.go"]) {
		t.Errorf("got %q, want what sqlc makes now", got)
	}
}

func TestWhatSQLCWasSeenToMakeIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	runs := 0
	in := onDisk(t, func(_ context.Context, files map[string][]byte) (map[string][]byte, error) {
		runs++
		return compiled(files)
	})
	in.Seen = sqlc.Seen{Dir: t.TempDir()}
	for range 3 {
		if _, err := gen.Generate(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	if runs != 1 {
		t.Errorf("sqlc was run %d times, want once", runs)
	}
}

func TestWhatCouldNotBeComparedIsSaid(t *testing.T) {
	t.Parallel()
	for _, reason := range []error{
		sqlc.ErrMissing, errors.New("no space left"), &sqlc.CompileError{},
	} {
		in := onDisk(t, func(context.Context, map[string][]byte) (map[string][]byte, error) {
			return nil, reason
		})
		r, err := gen.Generate(t.Context(), in)
		if err != nil || len(r.Diagnostics) != 1 || r.Diagnostics[0].Rule != diag.OutputUnchecked ||
			r.Diagnostics.HasErrors() {
			t.Errorf("%v: got error %v and %v", reason, err, r.Diagnostics)
			continue
		}
		before, _ := compiled(nil)
		if got := planned(t, r.Plan, compiledFile); got != string(before["db.go"]) {
			t.Errorf("%v: got %q, want what is on disk", reason, got)
		}
	}
}

func TestAnInterruptedComparisonIsNoResult(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	in := onDisk(t, func(ctx context.Context, _ map[string][]byte) (map[string][]byte, error) {
		cancel()
		return nil, ctx.Err()
	})
	if r, err := gen.Generate(ctx, in); !errors.Is(err, context.Canceled) || len(r.Plan.Files) > 0 {
		t.Errorf("got error %v and %d files", err, len(r.Plan.Files))
	}
}
