package storage

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Operator has the operations on an outbox for operators and their tools. Generated stores
// implement it, and embed BaseStore for methods that are added later. It is safe for concurrent
// use.
type Operator interface {
	// ListDeadLetters returns dead letters, the oldest first.
	ListDeadLetters(context.Context, ListDeadLettersParams) (ListDeadLettersResult, error)
	// ReplayDeadLetters moves dead letters back into the outbox, after the events that are pending
	// there. They keep their ids, and their attempts are counted from 0.
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
	// Replays is how many times the event was replayed before it became this dead letter.
	Replays int32
}

// Format writes the event's type and id, and the error, for every verb.
func (d DeadLetter) Format(f fmt.State, verb rune) {
	d.Message.Format(f, verb)
	_, _ = fmt.Fprintf(f, ", dead since %s: %s", d.DiedAt.Format(time.RFC3339), d.Error)
}

// LogValue has the event's type and id, the error and its time, and nothing of payload, key or
// headers.
func (d DeadLetter) LogValue() slog.Value {
	return slog.GroupValue(append(d.Message.LogValue().Group(),
		slog.String("error", d.Error), slog.Time("died_at", d.DiedAt))...)
}

// ListDeadLettersParams are the parameters of Operator.ListDeadLetters.
type ListDeadLettersParams struct {
	Limit int    // at least 1
	Type  string // only events of this name, in any version, such as order.placed; "" for all
}

// ListDeadLettersResult is the result of Operator.ListDeadLetters.
type ListDeadLettersResult struct{ DeadLetters []DeadLetter }

// ReplayDeadLettersParams name events by their ids.
type ReplayDeadLettersParams struct{ IDs []ID }

// ReplayDeadLettersResult has the number of dead letters that were moved. It can exceed the number
// of ids: a fact that was enqueued in several versions has a dead letter for each.
type ReplayDeadLettersResult struct{ Replayed int }

// DiscardDeadLettersParams name events by their ids.
type DiscardDeadLettersParams struct{ IDs []ID }

// DiscardDeadLettersResult has the number of dead letters that were deleted.
type DiscardDeadLettersResult struct{ Discarded int }
