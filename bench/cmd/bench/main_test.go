package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/report"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
	"github.com/outboxgen/outboxgen/bench/internal/scenario"
	"github.com/outboxgen/outboxgen/internal/testenv/postgresenv"
)

// some are scenarios that take next to no time, one for each kind of outcome.
var some = []scenario.Scenario{
	{Name: "small", Run: drainFew},
	{Name: "broken", Run: func(context.Context, *lab.Lab) (report.Result, error) {
		return report.Result{Claims: []report.Claim{{
				What: "before it broke", Values: measure.Series{5}, Unit: "ms",
			}}},
			errors.New("bench: half way: it broke")
	}},
	{Name: "slow", Run: func(context.Context, *lab.Lab) (report.Result, error) {
		return report.Result{Claims: []report.Claim{
			{
				What:   "what is too slow",
				Values: measure.Series{0.5, 0.6},
				Unit:   "×",
				Bound:  report.AtLeast(1),
			},
		}}, nil
	}},
}

// drainFew is like a real scenario, with few events.
func drainFew(ctx context.Context, l *lab.Lab) (report.Result, error) {
	const n = 300
	db, err := l.Database(ctx, 4)
	if err != nil {
		return report.Result{}, err
	}
	defer db.Drop()
	var relay rival.Relay
	if err := relay.Prepare(ctx, db); err != nil {
		return report.Result{}, err
	}
	if err := relay.Fill(ctx, db, rival.Uniform(n).Orders()); err != nil {
		return report.Result{}, err
	}
	took, err := relay.Drain(ctx, db, n)
	if err != nil {
		return report.Result{}, err
	}
	rate := measure.Series{measure.Rate(n, took)}
	return report.Result{
		Claims: []report.Claim{{
			What:   "drain few pending events",
			Values: rate,
			Unit:   "events/s",
			Bound:  report.AtLeast(1),
		}},
		Lines: []report.Line{{
			Name: relay.Name(), Points: []report.Point{{Backlog: n, Rate: rate}},
		}},
	}, nil
}

// call runs the command on a server of its own, if there is one on this machine.
func call(
	t *testing.T, scenarios []scenario.Scenario, args ...string,
) (code int, stdout, stderr string) {
	t.Helper()
	postgresenv.Shared(t)
	var out, errs bytes.Buffer
	code = do(t.Context(), scenarios, args, &out, &errs)
	return code, out.String(), errs.String()
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestReportIsPrintedAndWritten(t *testing.T) {
	out := filepath.Join(t.TempDir(), "new", "folder")
	code, stdout, stderr := call(t, some[:1], "-out", out)
	if code != 0 {
		t.Fatalf("exit code %d, want 0: %s", code, stderr)
	}
	for _, want := range []string{
		"| drain few pending events | ≥ 1 events/s |", "| ✓ ", "Bounds reached: 1 of 1.",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("standard output lacks %q:\n%s", want, stdout)
		}
	}
	page := read(t, filepath.Join(out, pageFile))
	for _, want := range []string{
		strings.TrimSpace(stdout), "](" + plotFile + ")", "## How it was measured",
		"| Go ", "| PostgreSQL ", "| github.com/jackc/pgx/v5 ", "| a commit takes ",
		"| fsync              | on |", "| full_page_writes   | on |",
		"| synchronous_commit | on |", "| shared_buffers     | 1GB |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	for _, path := range []string{os.TempDir(), "/bin"} {
		if strings.Contains(page, path) {
			t.Errorf("the page names the path %q:\n%s", path, page)
		}
	}
	if plot := read(t, filepath.Join(out, plotFile)); !strings.Contains(plot, ">outboxgen<") {
		t.Errorf("the plot has no line of the relay:\n%s", plot)
	}
}

func TestWhatFailsHidesNothingElse(t *testing.T) {
	out := t.TempDir()
	code, stdout, stderr := call(t, some[1:], "-out", out)
	if code != 1 || !strings.Contains(stderr, "scenarios that failed: 1") {
		t.Errorf("exit code %d, want 1 and a failure: %s", code, stderr)
	}
	before, broken, slow := strings.Index(stdout, "before it broke"), strings.Index(stdout,
		"half way"), strings.Index(stdout, "✗ missed")
	if before < 0 || broken < before || slow < broken {
		t.Errorf("want what was measured, then the failure, then the missed bound in:\n%s", stdout)
	}
	if page := read(t, filepath.Join(out, pageFile)); !strings.Contains(page, "✗ failed") ||
		strings.Contains(page, "![") {
		t.Errorf("want the failure and no plot in:\n%s", page)
	}
}

func TestMissedBoundFailsOnlyIfStrict(t *testing.T) {
	if code, _, stderr := call(t, some, "-only", "slow"); code != 0 {
		t.Errorf("exit code %d, want 0: %s", code, stderr)
	}
	if code, _, stderr := call(t, some, "-only", "slow", "-strict"); code != 1 ||
		!strings.Contains(stderr, "bounds that were missed: 1") {
		t.Errorf("exit code %d, want 1 and a missed bound: %s", code, stderr)
	}
}

func TestProfilesAreWritten(t *testing.T) {
	o := options{
		cpuProfile:    filepath.Join(t.TempDir(), "cpu"),
		memoryProfile: filepath.Join(t.TempDir(), "memory"),
	}
	stop, err := startProfiles(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{o.cpuProfile, o.memoryProfile} {
		if read(t, path) == "" {
			t.Errorf("%s is empty", path)
		}
	}
}

func TestInterruptedRunShowsWhatItHasAndWritesNothing(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	out := t.TempDir()
	scenarios := []scenario.Scenario{some[2],
		{Name: "interrupted", Run: func(ctx context.Context, _ *lab.Lab) (report.Result, error) {
			interrupt()
			<-ctx.Done()
			return report.Result{}, ctx.Err()
		}}, some[0]}
	postgresenv.Shared(t)
	var stdout, stderr bytes.Buffer
	if code := do(ctx, scenarios, []string{"-out", out}, &stdout, &stderr); code != 1 ||
		!strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("exit code %d, want 1 and an interruption: %s", code, &stderr)
	}
	if !strings.Contains(stdout.String(), "what is too slow") ||
		strings.Contains(stdout.String(), "small") {
		t.Errorf("want what was measured and nothing else in:\n%s", &stdout)
	}
	if files, err := os.ReadDir(out); err != nil || len(files) > 0 {
		t.Errorf("got files %v and error %v, want none", files, err)
	}
}

func TestWrongFlagsAreExplained(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{
			[]string{"-only", "small,nonsense"}, 2,
			`there is no scenario "nonsense"; there are small, broken, slow`,
		},
		{[]string{"-only", "small,"}, 2, `there is no scenario ""`},
		{[]string{"small"}, 2, `"small" is no flag: scenarios are named with -only`},
		{[]string{"-fast"}, 2, "flag provided but not defined: -fast"},
		{[]string{"-only", "small", "-out", "results"}, 2, "writes nothing: drop -out"},
		{[]string{"-quick", "-out", "results"}, 2, "writes nothing: drop -out"},
		{[]string{"-help"}, 0, "not with -quick or -only"},
		{[]string{"-help"}, 0, "-cpuprofile file"},
	} {
		var stdout, stderr bytes.Buffer
		if code := do(t.Context(), some, c.args, &stdout, &stderr); code != c.code ||
			!strings.Contains(stderr.String(), c.want) {
			t.Errorf("%v: exit code %d, want %d; want %q in:\n%s", c.args, code, c.code, c.want,
				&stderr)
		}
	}
}

func TestListHasTheNamesThatOnlyTakes(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-list": "small\nbroken\nslow\n", "-list -only slow,small": "small\nslow\n",
	} {
		var stdout, stderr bytes.Buffer
		if code := do(t.Context(), some, strings.Fields(args), &stdout, &stderr); code != 0 ||
			stdout.String() != want {
			t.Errorf("%s: exit code %d and %q, want 0 and %q", args, code, &stdout, want)
		}
	}
}

func TestUnwritableReportIsFoundBeforeAnythingIsMeasured(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"-out", "-cpuprofile", "-memprofile"} {
		var stdout, stderr bytes.Buffer
		code := do(t.Context(), some, []string{flag, filepath.Join(file, "below")}, &stdout,
			&stderr)
		if code != 1 || !strings.Contains(stderr.String(), "not a directory") || stdout.Len() > 0 {
			t.Errorf("%s: exit code %d, output %q, errors %q, want only an error", flag, code,
				&stdout, &stderr)
		}
	}
}
