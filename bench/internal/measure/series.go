// Package measure does the arithmetic of a benchmark of several rounds.
package measure

import (
	"math"
	"slices"
	"time"
)

// Series has the value of one quantity in each round.
type Series []float64

// Median returns the middle value, or the mean of the two in the middle; NaN if there is none.
func (s Series) Median() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Min returns the least value; NaN if there is none.
func (s Series) Min() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	return slices.Min(s)
}

// Max returns the greatest value; NaN if there is none.
func (s Series) Max() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	return slices.Max(s)
}

// Over divides each round of s by the same round of base. It leaves out rounds that only one of
// them has.
func (s Series) Over(base Series) Series {
	ratios := make(Series, min(len(s), len(base)))
	for i := range ratios {
		ratios[i] = s[i] / base[i]
	}
	return ratios
}

// Serial returns, for each round, the rate of processing each event first at the rate of s and then
// at that of next: what the processors allow at most if both steps need all of them. It leaves out
// rounds that only one of them has.
func (s Series) Serial(next Series) Series {
	rates := make(Series, min(len(s), len(next)))
	for i := range rates {
		rates[i] = 1 / (1/s[i] + 1/next[i])
	}
	return rates
}

// Rate returns events per second.
func Rate(n int, d time.Duration) float64 { return float64(n) / d.Seconds() }

// Percentile returns the value that a share p (0 < p ≤ 1) of all values do not exceed, by the
// nearest-rank method, or 0 if there are none. It sorts the slice.
func Percentile(values []time.Duration, p float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	rank := int(math.Ceil(p*float64(len(values)))) - 1
	return values[max(0, min(rank, len(values)-1))]
}

// Milliseconds returns d in milliseconds, with fractions.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
