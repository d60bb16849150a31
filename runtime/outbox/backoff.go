package outbox

import (
	"math"
	"math/rand/v2"
	"time"
)

// backoff returns how long to wait after the nth failure in a row: a random time up to a bound that
// doubles from first with each failure and ends at limit ("full jitter").
func backoff(n int, first, limit time.Duration) time.Duration {
	return jitter(doubled(n, first, limit))
}

// doubled returns first, doubled n-1 times, and at most limit.
func doubled(n int, first, limit time.Duration) time.Duration {
	bound := first
	for i := 1; i < n && bound < limit; i++ {
		if bound > limit/2 {
			return limit
		}
		bound *= 2
	}
	return min(bound, limit)
}

// jitter returns a random time above 0, and at most bound.
func jitter(bound time.Duration) time.Duration { return rand.N(max(bound, 1)) + 1 }

// oneMore counts an attempt. At the top of its range a count stays there.
func oneMore(attempts int32) int32 {
	if attempts == math.MaxInt32 {
		return attempts
	}
	return attempts + 1
}
