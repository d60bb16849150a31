package outbox

import "math"

// oneMore counts an attempt. At the top of its range a count stays there.
func oneMore(attempts int32) int32 {
	if attempts == math.MaxInt32 {
		return attempts
	}
	return attempts + 1
}
