// Package backoff says how long to wait after failures in a row.
package backoff

import (
	"math/rand/v2"
	"time"
)

// Delay returns how long to wait after the nth failure in a row: a random time above 0, and at most
// Bound(n, first, limit). The whole range is drawn from ("full jitter"), so that those who failed
// together do not try again together.
func Delay(n int, first, limit time.Duration) time.Duration {
	return Jitter(Bound(n, first, limit))
}

// Bound returns first for the first failure, twice as much for each further one, and at most limit.
func Bound(n int, first, limit time.Duration) time.Duration {
	bound := first
	for i := 1; i < n && 0 < bound && bound < limit; i++ {
		if bound > limit/2 {
			return limit
		}
		bound *= 2
	}
	return min(bound, limit)
}

// Jitter returns a random time above 0, and at most bound. It returns 1 ns for a bound below that.
func Jitter(bound time.Duration) time.Duration { return rand.N(max(bound, 1)) + 1 }
