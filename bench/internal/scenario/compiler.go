package scenario

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/report"
	"github.com/outboxgen/outboxgen/internal/testenv/tempdir"
)

const compilerTimeout = 5 * time.Minute

// compiler measures outboxgen as people run it, on a catalogue of 500 events, and how its time
// grows with larger ones.
func compiler(ctx context.Context, l *lab.Lab) (report.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, compilerTimeout)
	defer cancel()
	dir, err := tempdir.New("outboxgen-bench-compiler-")
	if err != nil {
		return report.Result{}, fmt.Errorf("bench: compiler: %w", err)
	}
	defer func() { _ = dir.Remove() }()
	binary := dir.Join("outboxgen")
	if _, err := runProgram(ctx, "", "go", "build", "-o", binary,
		"github.com/outboxgen/outboxgen/cmd/outboxgen"); err != nil {
		return report.Result{}, err
	}
	projects := map[int]*project{}
	sizes := lab.Pick(l, []int{125, 250, 500, 1000, 2000}, []int{500, 2000})
	for _, n := range sizes {
		projects[n] = &project{binary: binary, dir: dir.Join(strconv.Itoa(n)), events: n}
		if err := projects[n].create(ctx); err != nil {
			return report.Result{}, fmt.Errorf("%d events: %w", n, err)
		}
	}
	for range lab.Pick(l, 7, 3) {
		for _, n := range sizes {
			if err := projects[n].generateAll(ctx); err != nil {
				return report.Result{}, fmt.Errorf("%d events: %w", n, err)
			}
		}
		if err := projects[500].editAndCheck(ctx); err != nil {
			return report.Result{}, err
		}
	}
	return report.Result{Claims: append(projects[500].claims(), growth(projects, sizes))}, nil
}

// growth compares the processor time for each event of a large catalogue with that of a smaller
// one. They are equal if the time is linear.
func growth(projects map[int]*project, sizes []int) report.Claim {
	var curve []string
	for _, n := range sizes {
		curve = append(curve, fmt.Sprintf("%s in %.2f s", report.Number(float64(n)),
			projects[n].whole.elapsed.Median()))
	}
	ratios := projects[2000].whole.processor.Over(projects[500].whole.processor)
	for i := range ratios {
		ratios[i] /= 2000.0 / 500
	}
	return report.Claim{
		What: "outboxgen generate: all Go missing, processor time for each of 2,000 events " +
			"against each of 500",
		Values: ratios, Unit: "×", Bound: report.AtMost(1.3),
		Detail: "events: " + strings.Join(curve, ", "),
	}
}

// project is a module with a catalogue, and the code that outboxgen has generated from it.
type project struct {
	binary, dir        string
	events             int
	edition            int // of the catalogue
	part, whole, check timing
}

// timing is what runs of a program took, in seconds.
type timing struct{ elapsed, processor measure.Series }

func (p *project) claims() []report.Claim {
	claim := func(command string, t timing, most float64) report.Claim {
		return report.Claim{
			What: fmt.Sprintf("outboxgen %s, %d events and %d types, no SQL changed", command,
				p.events, typesFor(p.events)),
			Values: t.elapsed, Unit: "s", Bound: report.AtMost(most),
			Detail: fmt.Sprintf("%.2f s of processor time", t.processor.Median()),
		}
	}
	return []report.Claim{
		claim(fmt.Sprintf("generate: %d events changed", editedEvents), p.part, 1),
		claim("generate: all Go missing", p.whole, 1),
		claim("check", p.check, 0.5),
	}
}

// create creates the module. What sqlc makes of the SQL is copied from the benchmarks' own module,
// since it does not depend on the events.
func (p *project) create(ctx context.Context) error {
	own, err := runProgram(ctx, "", "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/outboxgen/outboxgen/bench")
	if err != nil {
		return err
	}
	bench := os.DirFS(strings.TrimSpace(own.output))
	for _, dir := range []string{"events/outboxdb", "migrations"} {
		files, err := fs.Sub(bench, dir)
		if err == nil {
			err = os.CopyFS(filepath.Join(p.dir, dir), files)
		}
		if err != nil {
			return fmt.Errorf("bench: copy %s: %w", dir, err)
		}
	}
	lock, err := fs.ReadFile(bench, "outboxgen.lock")
	if err != nil {
		return fmt.Errorf("bench: copy the lock: %w", err)
	}
	if err := errors.Join(p.write("outboxgen.lock", string(lock)),
		p.write("go.mod", "module shop.example/shop\n"), p.edit()); err != nil {
		return err
	}
	_, err = runProgram(ctx, p.dir, p.binary, "generate")
	return err
}

// edit writes the next edition of the catalogue.
func (p *project) edit() error {
	p.edition++
	return p.write("outbox.yaml", catalogue(p.events, p.edition))
}

func (p *project) write(name, content string) error {
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(content), 0o644); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}

// generateAll moves all Go away and generates. If the files were deleted instead, ext4 would be
// slower: whenever it creates a file, it passes over everything that was deleted in the last
// seconds.
func (p *project) generateAll(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(p.dir, "events", "*.gen.go"))
	if err != nil {
		return err
	}
	away := filepath.Join(p.dir, "away", strconv.Itoa(len(p.whole.elapsed)))
	if err := os.MkdirAll(away, 0o755); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	for _, file := range files {
		if err := os.Rename(file, filepath.Join(away, filepath.Base(file))); err != nil {
			return fmt.Errorf("bench: %w", err)
		}
	}
	return p.run(ctx, &p.whole, len(files), "generate")
}

// editAndCheck changes some events, generates, and checks that nothing else has changed.
func (p *project) editAndCheck(ctx context.Context) error {
	if err := p.edit(); err != nil {
		return err
	}
	if err := p.run(ctx, &p.part, editedEvents+1, "generate"); err != nil { // one more is the lock
		return err
	}
	return p.run(ctx, &p.check, 0, "check")
}

// run runs a command of outboxgen, which has to write that many files, and adds its times to t.
func (p *project) run(ctx context.Context, t *timing, files int, command string) error {
	r, err := runProgram(ctx, p.dir, p.binary, command)
	if err != nil {
		return err
	}
	if n := strings.Count(r.output, "wrote "); n != files {
		return fmt.Errorf("bench: outboxgen %s wrote %d files, want %d", command, n, files)
	}
	t.elapsed = append(t.elapsed, r.elapsed.Seconds())
	t.processor = append(t.processor, r.processor.Seconds())
	slog.Info("compiled", "command", command, "events", p.events, "written", files, "seconds",
		r.elapsed.Seconds())
	return nil
}

// programRun is the outcome of running a program.
type programRun struct {
	output             string
	elapsed, processor time.Duration
}

func runProgram(ctx context.Context, dir, name string, args ...string) (r programRun, err error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	began := time.Now()
	output, err := cmd.Output()
	r.elapsed = time.Since(began)
	if err != nil {
		return r, fmt.Errorf("bench: %s: %w\n%s", cmd, err, stderr.String())
	}
	r.output = string(output)
	r.processor = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return r, nil
}
