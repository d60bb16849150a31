package report

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Report is a run of the benchmarks.
type Report struct {
	Began       time.Time
	Took        time.Duration
	Environment Environment
	Outcomes    []Outcome // in the order of the table
}

// Outcome is a scenario's result, and the error that it ended with. It may have both.
type Outcome struct {
	Scenario string
	Result
	Err error
}

// Add appends the outcome of a scenario, and returns its error. An empty result is an error, and so
// is a figure that is not a number.
func (r *Report) Add(scenario string, result Result, err error) error {
	if err == nil {
		err = result.check()
	}
	r.Outcomes = append(r.Outcomes, Outcome{scenario, result, err})
	return err
}

func (r Result) check() error {
	if len(r.Claims)+len(r.Lines) == 0 {
		return errors.New("bench: nothing was measured")
	}
	for _, c := range r.Claims {
		if err := c.check(); err != nil {
			return err
		}
	}
	for _, line := range r.Lines {
		if err := line.check(); err != nil {
			return err
		}
	}
	return nil
}

func (c Claim) check() error {
	if spread := c.Values.Max() - c.Values.Min(); math.IsNaN(spread) || math.IsInf(spread, 0) {
		return fmt.Errorf("bench: %s: not all of the rounds have a figure: %v", c.What, c.Values)
	}
	return nil
}

func (l Line) check() error {
	if len(l.Points) == 0 {
		return fmt.Errorf("bench: %s: no backlog was measured", l.Name)
	}
	for _, p := range l.Points {
		if p.Backlog <= 0 || !(p.Rate.Min() > 0) || math.IsInf(p.Rate.Max(), 0) {
			return fmt.Errorf("bench: %s at %d events: not all of the rounds have a rate: %v",
				l.Name, p.Backlog, p.Rate)
		}
	}
	return nil
}

// Tally counts the table's marks: bounds that were reached or missed, and scenarios that failed.
type Tally struct{ Reached, Missed, Failed int }

// Tally counts all outcomes.
func (r *Report) Tally() (t Tally) {
	for _, o := range r.Outcomes {
		if o.Err != nil {
			t.Failed++
		}
		for _, c := range o.Claims {
			switch {
			case c.Bound == Bound{}:
			case c.Reached():
				t.Reached++
			default:
				t.Missed++
			}
		}
	}
	return t
}

// String has a sentence for each count that is not zero.
func (t Tally) String() string {
	s := fmt.Sprintf("Bounds reached: %d of %d.", t.Reached, t.Reached+t.Missed)
	if t.Failed > 0 {
		s += fmt.Sprintf(" Scenarios that failed: %d.", t.Failed)
	}
	return s
}

// Table has a line for each claim, and one for each scenario that failed. It is Markdown that is
// readable in a terminal.
func (r *Report) Table() string {
	t := table{{
		"what", "to reach", "median (min–max)", "rounds", "reached", "the figures behind",
	}}
	for _, o := range r.Outcomes {
		for _, c := range o.Claims {
			t = append(t, []string{
				c.What, c.Bound.in(c.Unit), c.measured(), strconv.Itoa(len(c.Values)), c.verdict(),
				c.Detail,
			})
		}
		if o.Err != nil {
			t = append(t, []string{o.Scenario, "", "", "", "✗ failed", failure(o.Err)})
		}
	}
	return t.String()
}

// Lines returns the lines of all outcomes that can be drawn.
func (r *Report) Lines() (lines []Line) {
	for _, o := range r.Outcomes {
		for _, line := range o.Lines {
			if line.check() == nil {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// method describes how things are measured, and how the contestants differ.
//
//go:embed method.md
var method string

// Markdown returns the report as a page, with the image plot, unless that is "".
func (r *Report) Markdown(plot string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# What the benchmarks measured\n\nOn %s, in %v.\n\n",
		r.Began.UTC().Format("2 January 2006"), r.Took.Round(time.Second))
	b.WriteString("Figures are medians over the rounds. Absolute ones belong to the machine " +
		"below; the ratios are what counts.\n\n")
	fmt.Fprintf(&b, "%s\n%s\n\n", r.Table(), r.Tally())
	if plot != "" {
		fmt.Fprintf(&b, "![Events per second over the number of pending events](%s)\n\n", plot)
	}
	fmt.Fprintf(&b, "## How it was measured\n\n%s\n", method)
	fmt.Fprintf(&b, "## The machine\n\n%s\n", facts(r.Environment.Machine))
	fmt.Fprintf(&b, "## Versions\n\n%s\n", facts(r.Environment.Versions))
	fmt.Fprintf(&b, "## The server's settings\n\nAs it reports them.\n\n%s",
		facts(r.Environment.Settings))
	return b.String()
}

func facts(all []Fact) table {
	t := table{{"what", "value"}}
	for _, f := range all {
		t = append(t, []string{f.Name, f.Value})
	}
	return t
}
