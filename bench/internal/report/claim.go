// Package report writes down what the benchmarks measured.
package report

import (
	"github.com/outboxgen/outboxgen/bench/internal/measure"
)

// Claim is a line of the table: what was measured, what is to be reached, and what was.
type Claim struct {
	What   string         // "drain 50,000 pending events: relay against River"
	Values measure.Series // one of each round; most are ratios
	Unit   string         // "×" of a ratio; "ms", "B", "MiB", "s", "%", "events" of others
	Bound  Bound
	Detail string // the figures behind: "relay 61,000 events/s, River 4,900"
}

// Bound is what a claim's median is to reach. The zero value is no bound: the figure is shown for its own sake.
type Bound struct {
	AtLeast, AtMost *float64
}

// AtLeast is a lower bound.
func AtLeast(v float64) Bound { return Bound{AtLeast: &v} }

// AtMost is an upper bound.
func AtMost(v float64) Bound { return Bound{AtMost: &v} }

// Reached reports whether the median keeps within the bound.
func (c Claim) Reached() bool {
	m := c.Values.Median()
	return (c.Bound.AtLeast == nil || m >= *c.Bound.AtLeast) && (c.Bound.AtMost == nil || m <= *c.Bound.AtMost)
}

// Line is a curve of the plot: throughput in events per second over the backlog in events.
type Line struct {
	Name   string
	Points []Point
}

// Point is what was measured at one backlog.
type Point struct {
	Backlog int
	Rate    measure.Series
}

// Result is what a scenario came to.
type Result struct {
	Claims []Claim
	Lines  []Line // for the plot
}
