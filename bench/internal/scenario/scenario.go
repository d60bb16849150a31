// Package scenario has what the benchmarks measure, one scenario a file.
package scenario

import (
	"context"

	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/report"
)

// Scenario measures one thing, for some lines of the table.
type Scenario struct {
	Name string // as the flag -only takes it
	// Run returns what it has measured. Together with an error, that is what it had when it failed.
	Run func(context.Context, *lab.Lab) (report.Result, error)
}

// All are the scenarios in the order of the table.
var All = []Scenario{
	{"drain", drain},
	{"million", million},
	{"snapshot", snapshot},
	{"retention", retention},
	{"hotkey", hotKey},
	{"held", held},
	{"choices", choices},
	{"broker", broker},
	{"wal", wal},
	{"pressure", pressure},
	{"steady", steady},
	{"enqueue", enqueue},
	{"clients", clients},
	{"bulk", bulk},
	{"latency", latency},
	{"processes", processes},
	{"memory", memory},
	{"inbox", deduplication},
	{"compiler", compiler},
}

// perSecond writes a rate for people: "61,200 events/s".
func perSecond(s measure.Series) string { return report.Number(s.Median()) + " events/s" }
