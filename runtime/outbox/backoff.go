package outbox

import (
	"math/rand/v2"
	"time"
)

// backoff returns how long to wait after the nth failure in a row: a random time up to a bound that doubles from first
// with each failure and ends at limit ("full jitter").
func backoff(n int, first, limit time.Duration) time.Duration {
	bound := first
	for i := 1; i < n && bound < limit; i++ {
		bound *= 2
	}
	return rand.N(min(bound, limit)) + 1
}
