package report_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/report"
)

func TestTableIsAsTheGoldenFileHasIt(t *testing.T) {
	t.Parallel()
	golden(t, "table.md", sample().Table())
}

func TestMarkdownIsAsTheGoldenFileHasIt(t *testing.T) {
	t.Parallel()
	golden(t, "report.md", sample().Markdown("throughput.svg"))
}

func TestMarkdownWithoutAPlotShowsNoImage(t *testing.T) {
	t.Parallel()
	if page := sample().Markdown(""); strings.Contains(page, "![") {
		t.Errorf("got an image:\n%s", page)
	}
}

func TestTallyCountsBoundsAndFailures(t *testing.T) {
	t.Parallel()
	if got, want := sample().Tally(), (report.Tally{
		Reached: 2, Missed: 1, Failed: 1,
	}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestWhatIsNotMeasuredIsAFailure(t *testing.T) {
	t.Parallel()
	claim := func(values ...float64) report.Result {
		return report.Result{Claims: []report.Claim{{
			What: "speed", Values: values, Unit: "×", Bound: report.AtLeast(1),
		}}}
	}
	line := func(points ...report.Point) report.Result {
		return report.Result{Lines: []report.Line{{Name: "River", Points: points}}}
	}
	for name, result := range map[string]report.Result{
		"nothing at all":         {},
		"no round":               claim(),
		"a round without figure": claim(2, math.NaN(), 3),
		"an infinite ratio":      claim(2, math.Inf(1)),
		"a line without points":  line(),
		"no rate":                line(report.Point{Backlog: 10}),
		"a rate of nothing":      line(report.Point{Backlog: 10, Rate: measure.Series{5, 0}}),
		"no backlog":             line(report.Point{Rate: measure.Series{5}}),
	} {
		var r report.Report
		if err := r.Add("drain", result, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
		if got := r.Tally(); got.Failed != 1 || got.Reached != 0 {
			t.Errorf("%s: got %+v, want a failure", name, got)
		}
		if table := r.Table(); !strings.Contains(table, "✗ failed") {
			t.Errorf("%s: the table does not say so:\n%s", name, table)
		}
		if lines := r.Lines(); len(lines) != 0 {
			t.Errorf("%s: got lines %v to draw, want none", name, lines)
		}
	}
}

func TestWhatAFailedScenarioMeasuredIsKept(t *testing.T) {
	t.Parallel()
	var r report.Report
	broken := errors.New("bench: the server is gone")
	if err := r.Add("drain", sample().Outcomes[0].Result, broken); !errors.Is(err, broken) {
		t.Errorf("got error %v, want %v", err, broken)
	}
	if got, want := r.Tally(), (report.Tally{Reached: 1, Missed: 1, Failed: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if len(r.Lines()) != len(lines()) {
		t.Errorf("got %d lines to draw, want %d", len(r.Lines()), len(lines()))
	}
}

func TestNumbersAreForPeople(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{
		0: "0", 1: "1", 50_000: "50,000", 1_000_001: "1,000,001", -1234: "-1,234", 123: "123",
		12.42: "12.4", 9.999: "10.0", 99.96: "100", 0.05604: "0.0560", 0.9996: "1.00",
		-0.5:  "-0.500",
		999.6: "1,000", 61_234.5: "61,200", 1191.4: "1,190", 123_456_789.1: "123,000,000",
		math.Inf(1): "+Inf",
	} {
		if got := report.Number(v); got != want {
			t.Errorf("Number(%v): got %q, want %q", v, got, want)
		}
	}
	if got := report.Number(math.NaN()); got != "NaN" {
		t.Errorf("got %q, want NaN", got)
	}
}
