// Package report formats the results of the benchmarks.
package report

import (
	"fmt"
	"strings"

	"github.com/outboxgen/outboxgen/bench/internal/measure"
)

// Claim is a line of the table: what was measured, the bound, and the result.
type Claim struct {
	What   string         // "drain 50,000 pending events: relay against River"
	Values measure.Series // one for each round; most are ratios
	Unit   string         // "×" for a ratio; "ms", "B", "MiB", "s", "%", "events" for others
	Bound  Bound
	Detail string // the figures behind it: "relay 61,000 events/s, River 4,900"
}

// Bound is the bound of a claim's median. The zero value is no bound: the figure is only reported.
type Bound struct {
	AtLeast, AtMost *float64
}

// AtLeast is a lower bound.
func AtLeast(v float64) Bound { return Bound{AtLeast: &v} }

// AtMost is an upper bound.
func AtMost(v float64) Bound { return Bound{AtMost: &v} }

// Reached reports whether every round has a figure and the median is within the bound.
func (c Claim) Reached() bool {
	m := c.Values.Median()
	return c.check() == nil && (c.Bound.AtLeast == nil || m >= *c.Bound.AtLeast) &&
		(c.Bound.AtMost == nil || m <= *c.Bound.AtMost)
}

// measured returns the result: "12.4 × (11.9–13.0)".
func (c Claim) measured() string {
	median := Number(c.Values.Median()) + " " + c.Unit
	least, most := c.Values.Min(), c.Values.Max()
	if least == most {
		return median
	}
	return fmt.Sprintf("%s (%s–%s)", median, Number(least), Number(most))
}

// verdict says whether the bound was reached, if there is one.
func (c Claim) verdict() string {
	switch {
	case c.Bound == Bound{}:
		return ""
	case c.Reached():
		return "✓"
	}
	return "✗ missed"
}

// in formats the bound for people: "≥ 10 ×".
func (b Bound) in(unit string) string {
	var limits []string
	if b.AtLeast != nil {
		limits = append(limits, "≥ "+exact(*b.AtLeast)+" "+unit)
	}
	if b.AtMost != nil {
		limits = append(limits, "≤ "+exact(*b.AtMost)+" "+unit)
	}
	return strings.Join(limits, ", ")
}

// Line is a curve of the plot: throughput in events per second over the backlog in events.
type Line struct {
	Name   string
	Points []Point
}

// Point is the throughput at one backlog.
type Point struct {
	Backlog int
	Rate    measure.Series
}

// Result is what a scenario measured.
type Result struct {
	Claims []Claim
	Lines  []Line // for the plot
}
