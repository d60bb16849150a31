package storage

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Operator is what people and their tools ask of an outbox. Generated stores implement it, and
// embed BaseStore for what is added later.
type Operator interface {
	// ListDeadLetters returns dead letters, the oldest first.
	ListDeadLetters(context.Context, ListDeadLettersParams) (ListDeadLettersResult, error)
	// ReplayDeadLetters puts dead letters back into the outbox, behind what is pending there, with
	// their ids and without attempts.
	ReplayDeadLetters(context.Context, ReplayDeadLettersParams) (ReplayDeadLettersResult, error)
	// DiscardDeadLetters deletes dead letters.
	DiscardDeadLetters(context.Context, DiscardDeadLettersParams) (DiscardDeadLettersResult, error)

	mustEmbedBaseStore()
}

// DeadLetter is an event that the relay gave up on.
type DeadLetter struct {
	Message
	Position
	Attempts int32
	Error    string
	DiedAt   time.Time
	// Replays is how often the event was replayed before it died this time.
	Replays int32
}

// Format writes the same for every verb: which event it is, and why it died.
func (d DeadLetter) Format(f fmt.State, verb rune) {
	d.Message.Format(f, verb)
	_, _ = fmt.Fprintf(f, ", dead since %s: %s", d.DiedAt.Format(time.RFC3339), d.Error)
}

// LogValue says which event it is and why it died, and nothing of its payload, key or headers.
func (d DeadLetter) LogValue() slog.Value {
	return slog.GroupValue(append(d.Message.LogValue().Group(),
		slog.String("error", d.Error), slog.Time("died_at", d.DiedAt))...)
}

// ListDeadLettersParams are those of Operator.ListDeadLetters.
type ListDeadLettersParams struct {
	Limit int    // at least 1
	Type  string // only events of this name, in any version, such as order.placed; "" for all
}

// ListDeadLettersResult is that of Operator.ListDeadLetters.
type ListDeadLettersResult struct{ DeadLetters []DeadLetter }

// ReplayDeadLettersParams name events by their ids.
type ReplayDeadLettersParams struct{ IDs []ID }

// ReplayDeadLettersResult is how many there were: a fact that was enqueued in several versions has
// a dead letter for each.
type ReplayDeadLettersResult struct{ Replayed int }

// DiscardDeadLettersParams name events by their ids.
type DiscardDeadLettersParams struct{ IDs []ID }

// DiscardDeadLettersResult is how many there were.
type DiscardDeadLettersResult struct{ Discarded int }
