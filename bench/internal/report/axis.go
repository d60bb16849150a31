package report

import "math"

// axis maps the values from least to most to pixels, by their logarithms.
type axis struct {
	least, most float64
	from, to    float64 // in pixels
}

// at returns the pixel of a value.
func (a axis) at(v float64) float64 {
	if a.least == a.most {
		return (a.from + a.to) / 2
	}
	return a.from + (a.to-a.from)*math.Log(v/a.least)/math.Log(a.most/a.least)
}

// ticks are the values 1, 2 and 5 times a power of ten, from the last one up to least to the first
// one from most on.
func ticks(least, most float64) (values []float64) {
	for power := math.Floor(math.Log10(least)); ; power++ {
		for _, digit := range []float64{1, 2, 5} {
			v := digit * math.Pow(10, power)
			if v <= least {
				values = values[:0]
			}
			values = append(values, v)
			if v >= most && v > least {
				return values
			}
		}
	}
}

// spread moves positions, which are in ascending order, so that neighbours are at least gap apart
// and the last one is not beyond most.
func spread(positions []float64, gap, most float64) {
	for i := 1; i < len(positions); i++ {
		positions[i] = max(positions[i], positions[i-1]+gap)
	}
	for i := len(positions) - 1; i >= 0; i-- {
		positions[i] = min(positions[i], most)
		most = positions[i] - gap
	}
}
