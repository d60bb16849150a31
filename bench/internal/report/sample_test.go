package report_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/report"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run go test with -update", err)
	}
	if got != string(want) {
		t.Errorf("%s differs from the golden file; look at the difference after go test with "+
			"-update. Got:\n%s", path, got)
	}
}

// sample returns a report with everything that a table can contain.
func sample() *report.Report {
	r := &report.Report{
		Began: time.Date(2031, time.May, 4, 22, 30, 0, 0, time.FixedZone("", -3*3600)),
		Took:  21*time.Minute + 4*time.Second + 300*time.Millisecond,
		Environment: report.Environment{
			Machine: []report.Fact{
				{Name: "processor", Value: "Analytical Engine"}, {Name: "cores", Value: "2"},
			},
			Versions: []report.Fact{
				{Name: "Go", Value: "go1.99"}, {Name: "PostgreSQL", Value: "21.3 (Debian 21.3-1)"},
			},
			Settings: []report.Fact{
				{Name: "fsync", Value: "on"}, {Name: "max_wal_size", Value: "16GB"},
			},
		},
	}
	_ = r.Add("drain", report.Result{
		Claims: []report.Claim{
			{What: "drain 50,000 pending events: relay against River",
				Values: measure.Series{13.04, 11.9, 12.42}, Unit: "×",
				Bound: report.AtLeast(10), Detail: "relay 61,000 events/s, River 4,900"},
			{What: "drain: relay against Watermill, queue schema",
				Values: measure.Series{0.981, 1.2, 0.97}, Unit: "×",
				Bound: report.AtLeast(1.2), Detail: "relay 61,000 events/s, Watermill 61,900"},
		},
		Lines: lines(),
	}, nil)
	_ = r.Add("wal", report.Result{Claims: []report.Claim{
		{
			What:   "write-ahead log per event",
			Values: measure.Series{1191.4},
			Unit:   "B",
			Bound:  report.AtMost(1300),
		},
		{What: "duplicates", Values: measure.Series{0, 0, 0}, Unit: "events", Detail: "of 100,000"},
	}}, nil)
	_ = r.Add("follow", report.Result{},
		errors.New("bench: River: drain: 3 of <nil>|99 events\twere *published*\nby /no/one"))
	return r
}

// lines returns lines of which some end close together and one ends early, and one of whose names
// is not valid XML.
func lines() []report.Line {
	rates := func(noise float64, rates ...float64) (points []report.Point) {
		backlogs := []int{1_000, 10_000, 100_000, 1_000_000}
		for i, r := range rates {
			points = append(points, report.Point{
				Backlog: backlogs[i], Rate: measure.Series{r, r * (1 + noise), r * (1 - noise)},
			})
		}
		return points
	}
	return []report.Line{
		{Name: "outboxgen", Points: rates(0.08, 31_000, 55_200, 61_300, 60_100)},
		{Name: "River", Points: rates(0.05, 4_100, 4_950, 4_870)},
		{
			Name:   "Watermill, default schema, batch 100",
			Points: rates(0.1, 3_100, 3_480, 3_510, 3_390),
		},
		{
			Name:   "Watermill, default schema, batch 1,000",
			Points: rates(0.15, 15_300, 21_900, 22_400, 20_700),
		},
		{
			Name:   "Watermill, queue schema, batch 1,000",
			Points: rates(0.06, 24_000, 46_800, 47_900, 55_300),
		},
		{Name: "Watermill, forwarder, batch 1,000", Points: rates(0.04, 22_000, 38_500, 40_100)},
		{
			Name:   `claims & deletes "<row by row>"`,
			Points: rates(0.3, 13_700, 19_400, 18_800, 19_900),
		},
	}
}
