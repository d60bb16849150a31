package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/report"
	"github.com/outboxgen/outboxgen/bench/internal/scenario"
)

// The files of a report.
const (
	pageFile = "latest.md"
	plotFile = "throughput.svg"
)

// scenarioTimeout is far more than any scenario takes: one that is still running then hangs.
const scenarioTimeout = time.Hour

// run measures, and writes the report. It reports a file that it cannot write to before it measures
// anything.
func run(ctx context.Context, o options, stdout io.Writer) (err error) {
	if o.out != "" {
		if err := os.MkdirAll(o.out, 0o755); err != nil {
			return fmt.Errorf("bench: %w", err)
		}
	}
	stop, err := startProfiles(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	l, err := lab.Open(ctx, o.quick)
	if err != nil {
		return fmt.Errorf("bench: start a server: %w", err)
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	r, err := measureAll(ctx, l, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s\n%s\n", r.Table(), r.Tally())
	if ctx.Err() != nil {
		return errors.New("bench: interrupted")
	}
	if o.out != "" {
		if err := write(r, o.out); err != nil {
			return err
		}
	}
	return verdict(r.Tally(), o.strict)
}

// measureAll runs the scenarios one after the other. If one fails, the others still run; the end of
// ctx stops them.
func measureAll(ctx context.Context, l *lab.Lab, o options) (*report.Report, error) {
	environment, err := report.Describe(ctx, l)
	if err != nil {
		return nil, err
	}
	r := &report.Report{Began: time.Now(), Environment: environment}
	for i, s := range o.scenarios {
		if ctx.Err() != nil {
			break
		}
		slog.Info("scenario", "name", s.Name, "number", i+1, "of", len(o.scenarios))
		result, err := measureOne(ctx, l, s)
		if err := r.Add(s.Name, result, err); err != nil {
			slog.Error("scenario failed", "name", s.Name, "error", err)
		}
	}
	r.Took = time.Since(r.Began)
	return r, nil
}

func measureOne(ctx context.Context, l *lab.Lab, s scenario.Scenario) (report.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, scenarioTimeout)
	defer cancel()
	return s.Run(ctx, l)
}

// write writes the page and, if there are lines for it, the plot into a directory.
func write(r *report.Report, folder string) error {
	plot := ""
	if lines := r.Lines(); len(lines) > 0 {
		plot = plotFile
		if err := writeFile(folder, plot, report.Plot(lines)); err != nil {
			return err
		}
	}
	return writeFile(folder, pageFile, r.Markdown(plot))
}

func writeFile(folder, name, content string) error {
	if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
		return fmt.Errorf("bench: write the report: %w", err)
	}
	return nil
}

// verdict returns an error if something was not measured or, if strict, a bound was missed. Without
// strict the speed of the machine must not decide whether a run of the benchmarks succeeds.
func verdict(t report.Tally, strict bool) error {
	if t.Failed > 0 || strict && t.Missed > 0 {
		return fmt.Errorf("bench: scenarios that failed: %d; bounds that were missed: %d", t.Failed,
			t.Missed)
	}
	return nil
}
