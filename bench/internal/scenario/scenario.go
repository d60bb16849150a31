// Package scenario has what the benchmarks measure, one scenario a file.
package scenario

import (
	"context"

	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/report"
)

// Scenario measures one thing, which may take several lines of the table.
type Scenario struct {
	Name string // as in the flag -only
	// Run returns what it has measured. If it also returns an error, that is what it had until
	// then.
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

// perSecond formats a rate for people: "61,200 events/s".
func perSecond(s measure.Series) string { return report.Number(s.Median()) + " events/s" }
