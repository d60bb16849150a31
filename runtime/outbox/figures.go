package outbox

import "time"

// BacklogLimit is the largest number that a Backlog counts to, so that counting stays cheap.
const BacklogLimit = 100_000

// Backlog is the number and age of the events in an outbox, for all relays together.
type Backlog struct {
	// Pending is the number of events that are committed and not yet published, those that wait for
	// a retry included. It is BacklogLimit if there are that many or more.
	Pending int
	// Oldest is how long ago the oldest of them was enqueued, or 0 if there are none. If there are
	// more than BacklogLimit, only those that were counted are compared.
	Oldest time.Duration
	// DeadLetters is the number of dead letters. It is BacklogLimit if there are that many or more.
	DeadLetters int
}
