// Package backoff says how long to wait after failures in a row.
package backoff

import (
	"math/rand/v2"
	"time"
)

// Delay returns how long to wait after the nth failure in a row: a random time above 0, and at most
// Bound(n, first, limit). The whole range is used ("full jitter"), so that callers that failed
// at the same time do not retry at the same time.
func Delay(n int, first, limit time.Duration) time.Duration {
	return Jitter(Bound(n, first, limit))
}

// Bound returns first for n = 1 and doubles it for each further failure, up to limit.
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
