package storage

import "time"

// SettleParams are the parameters of Store.Settle. Nothing changes in a shard that the relay does
// not own with the fencing token in Owned.
type SettleParams struct {
	Relay ID
	Owned []Ownership
	// Published are removed from the outbox. If the catalogue asks for retention, they remain
	// readable.
	Published []Position
	// Retries stay in the outbox, to be tried again. The relay also does this before an attempt
	// that may end its process, so that the attempt is counted in any case.
	Retries []Retry
	// DeadLetters are moved to the dead letters, which an operator can replay or discard.
	DeadLetters []DeadLetterMove
}

// Retry puts an event off until Delay has passed.
type Retry struct {
	Position
	Attempts    int32 // charged so far
	Interrupted bool  // charged before the attempt, whose result is unknown
	Delay       time.Duration
	Error       string
}

// DeadLetterMove makes a dead letter of an event.
type DeadLetterMove struct {
	Position
	Attempts int32
	Error    string
}

// SettleResult has the number of events of each list that were changed. If fewer were changed than
// were given, either another relay owns the shard (this one was fenced off), or the events are
// gone.
type SettleResult struct {
	Published, Retries, DeadLetters int
}

// Total returns how many events were changed.
func (r SettleResult) Total() int { return r.Published + r.Retries + r.DeadLetters }
