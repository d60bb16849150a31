// Package measure does the arithmetic of a benchmark: what several rounds came to.
package measure

import (
	"math"
	"slices"
	"time"
)

// Series is what one quantity came to in each round.
type Series []float64

// Median returns the middle value, or the mean of the two in the middle; NaN of none.
func (s Series) Median() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Min returns the least value; NaN of none.
func (s Series) Min() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	return slices.Min(s)
}

// Max returns the greatest value; NaN of none.
func (s Series) Max() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	return slices.Max(s)
}

// Over divides each round of s by the same round of base. Rounds that only one of them has are left
// out.
func (s Series) Over(base Series) Series {
	ratios := make(Series, min(len(s), len(base)))
	for i := range ratios {
		ratios[i] = s[i] / base[i]
	}
	return ratios
}

// Serial returns, round by round, the rate of doing one thing at the rate of s and then the other
// at that of next, for each event: what the same processors allow at most if both need all of
// them. Rounds that only one of them has are left out.
func (s Series) Serial(next Series) Series {
	rates := make(Series, min(len(s), len(next)))
	for i := range rates {
		rates[i] = 1 / (1/s[i] + 1/next[i])
	}
	return rates
}

// Rate returns events per second.
func Rate(n int, d time.Duration) float64 { return float64(n) / d.Seconds() }

// Percentile returns the value that a share p of all (0 < p ≤ 1) do not exceed, by the nearest-rank
// method; 0 of none. It sorts the slice.
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
