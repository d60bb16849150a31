package outbox

import "time"

// breaker keeps a relay from trying when the broker cannot be reached. It opens after a few attempts in a row that could not
// reach it, lets one through after a while, and closes with the first answer.
type breaker struct {
	failures int // in a row
	openings int // in a row
	until    time.Time
	probing  bool
}

const (
	breakerThreshold = 3
	breakerMin       = 100 * time.Millisecond
	breakerMax       = 15 * time.Second
)

// isOpen reports whether the broker could not be reached of late.
func (b *breaker) isOpen() bool { return b.openings > 0 }

// ready reports whether an attempt may begin.
func (b *breaker) ready(now time.Time) bool {
	return !b.isOpen() || !b.probing && !now.Before(b.until)
}

// begin notes that an attempt begins: the only one while the breaker is open.
func (b *breaker) begin() { b.probing = b.isOpen() }

// reached closes the breaker, and reports whether it was open.
func (b *breaker) reached() bool {
	was := b.isOpen()
	*b = breaker{}
	return was
}

// failed notes that the broker could not be reached, and reports whether that is the broker's trouble rather than the event's.
func (b *breaker) failed(now time.Time, wakeLater func(time.Duration)) bool {
	b.failures++
	if b.failures < breakerThreshold {
		return false
	}
	if b.isOpen() && !b.probing {
		return true // begun before it opened
	}
	b.probing = false
	b.openings++
	delay := max(breakerMin, backoff(b.openings, breakerMin, breakerMax))
	b.until = now.Add(delay)
	wakeLater(delay)
	return true
}
