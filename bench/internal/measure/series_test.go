package measure

import (
	"math"
	"testing"
	"time"
)

func TestSeries(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		series           Series
		median, min, max float64
	}{
		"one":  {Series{3}, 3, 3, 3},
		"odd":  {Series{9, 1, 4}, 4, 1, 9},
		"even": {Series{8, 2, 4, 1}, 3, 1, 8},
	} {
		m, lo, hi := test.series.Median(), test.series.Min(), test.series.Max()
		if m != test.median || lo != test.min || hi != test.max {
			t.Errorf("%s: got median %v, min %v, max %v, want %v, %v, %v", name, m, lo, hi,
				test.median, test.min, test.max)
		}
	}
	if !math.IsNaN(Series{}.Median()) || !math.IsNaN(Series{}.Min()) ||
		!math.IsNaN(Series{}.Max()) {
		t.Error("what has no values has a median, a minimum or a maximum")
	}
	series := Series{5, 1, 3}
	if series.Median(); series[0] != 5 {
		t.Error("the median has changed the order of the rounds")
	}
}

func TestOverComparesRoundByRound(t *testing.T) {
	t.Parallel()
	got := Series{10, 30, 7}.Over(Series{5, 10})
	if len(got) != 2 || got[0] != 2 || got[1] != 3 {
		t.Errorf("got %v, want [2 3]", got)
	}
}

func TestSerialAddsTheTimesOfEachRound(t *testing.T) {
	t.Parallel()
	got := Series{100, 30, 7}.Serial(Series{100, 60})
	if len(got) != 2 || got[0] != 50 || got[1] != 20 {
		t.Errorf("got %v, want [50 20]", got)
	}
}

func TestPercentileIsThatOfTheNearestRank(t *testing.T) {
	t.Parallel()
	var values []time.Duration
	for i := range 100 {
		values = append(values, time.Duration(100-i))
	}
	for p, want := range map[float64]time.Duration{0.01: 1, 0.5: 50, 0.99: 99, 1: 100} {
		if got := Percentile(values, p); got != want {
			t.Errorf("%v: got %d, want %d", p, got, want)
		}
	}
	if got := Percentile(nil, 0.5); got != 0 {
		t.Errorf("of none: got %d, want 0", got)
	}
}
