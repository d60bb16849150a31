package outbox

import "time"

// breaker keeps a relay from trying a topic that cannot be reached. It opens after a few attempts in a row that could not reach
// it. From then on one event at a time is tried, another one each time and ever more rarely, until there is an answer. A nil
// breaker is closed.
type breaker struct {
	failures int // in a row
	until    time.Time
	probing  bool
	waiting  fifo // some lanes to try it with
}

const (
	breakerThreshold = 3
	breakerMin       = 100 * time.Millisecond
	breakerMax       = 15 * time.Second
	breakerWaiting   = 4 // few, since they are in flight
)

func (b *breaker) isOpen() bool { return b != nil && b.failures >= breakerThreshold }

// ready reports whether an attempt may begin.
func (b *breaker) ready(now time.Time) bool {
	return !b.isOpen() || !b.probing && !now.Before(b.until)
}

// failed notes that the topic could not be reached, and returns when to try again. Once open, only the probe counts.
func (b *breaker) failed(now time.Time, probe bool) time.Duration {
	if b.isOpen() && !probe {
		return max(breakerMin, b.until.Sub(now))
	}
	b.failures++
	b.probing = false
	delay := max(breakerMin, backoff(b.failures-breakerThreshold+1, breakerMin, breakerMax))
	b.until = now.Add(delay)
	return delay
}
