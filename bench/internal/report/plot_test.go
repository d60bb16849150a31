package report_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/report"
)

func TestPlotIsAsTheGoldenFileHasIt(t *testing.T) {
	t.Parallel()
	golden(t, "throughput.svg", report.Plot(lines()))
}

// texts parses an image and returns its visible texts.
func texts(t *testing.T, svg string) (all []string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("the image is no XML: %v\n%s", err, svg)
		}
		if text, ok := token.(xml.CharData); ok {
			all = append(all, string(text))
		}
	}
}

func TestPlotShowsEveryNameAsItIs(t *testing.T) {
	t.Parallel()
	shown := strings.Join(texts(t, report.Plot(lines())), "\n")
	for _, line := range lines() {
		if strings.Count(shown, line.Name) != 2 {
			t.Errorf("%q is not in both the description and the labels:\n%s", line.Name, shown)
		}
	}
}

func TestPlotOfOnePointIsNothingButNumbers(t *testing.T) {
	t.Parallel()
	svg := report.Plot([]report.Line{{
		Name: "one", Points: []report.Point{{Backlog: 1000, Rate: measure.Series{1000}}},
	}})
	texts(t, svg)
	for _, bad := range []string{"NaN", "Inf", "%!"} {
		if strings.Contains(svg, bad) {
			t.Errorf("the image has %s in it:\n%s", bad, svg)
		}
	}
}

func TestPlotDoesNotReorderWhatItIsGiven(t *testing.T) {
	t.Parallel()
	rate := measure.Series{3, 1, 2}
	line := report.Line{
		Name:   "backwards",
		Points: []report.Point{{Backlog: 20, Rate: rate}, {Backlog: 10, Rate: rate}},
	}
	report.Plot([]report.Line{line})
	if line.Points[0].Backlog != 20 || rate[0] != 3 {
		t.Errorf("got %v, want the points and rates where they were", line)
	}
}
