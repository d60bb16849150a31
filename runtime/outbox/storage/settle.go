package storage

import "time"

// SettleParams say what became of events of a relay. In a shard that is not the relay's under the
// fence that Owned names, nothing changes.
type SettleParams struct {
	Relay ID
	Owned []Ownership
	// Published are removed from the outbox. If the catalogue asks for retention, they remain
	// readable.
	Published []Position
	// Retries stay in the outbox, to be tried again. The relay also settles an event so before an
	// attempt that may end the process, so that the attempt counts in any case.
	Retries []Retry
	// DeadLetters are moved to the dead letters, for an operator.
	DeadLetters []DeadLetterMove
}

// Retry says when an event is tried again.
type Retry struct {
	Position
	Attempts    int32 // charged so far
	Interrupted bool  // charged before the attempt, whose end is not known
	Delay       time.Duration
	Error       string
}

// DeadLetterMove makes a dead letter of an event.
type DeadLetterMove struct {
	Position
	Attempts int32
	Error    string
}

// SettleResult is how many events of each list were changed. If there are fewer than were given,
// the relay was fenced off: another one owns the shard; or the events are gone.
type SettleResult struct {
	Published, Retries, DeadLetters int
}

// Total returns how many events were changed.
func (r SettleResult) Total() int { return r.Published + r.Retries + r.DeadLetters }
