// Package scenario has what the benchmarks measure, one scenario a file.
package scenario

import (
	"context"
	"fmt"

	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/report"
)

// Scenario measures one thing, for some lines of the table.
type Scenario struct {
	Name string // as the flag -only takes it
	Run  func(context.Context, *lab.Lab) (report.Result, error)
}

// All are the scenarios in the order of the table.
var All = []Scenario{
	{"drain", drain},
	{"million", million},
	{"snapshot", snapshot},
	{"retention", retention},
	{"hotkey", hotKey},
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
func perSecond(s measure.Series) string { return Thousands(s.Median()) + " events/s" }

// Thousands writes a number without its fraction and with a comma at every thousand.
func Thousands(v float64) string {
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
