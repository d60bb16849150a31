package outbox

import (
	"context"
	"errors"
)

// Publisher sends messages to a broker. The relay calls Publish from many goroutines at once, for one key from one at a time.
//
// Publish returns nil if and only if the broker has acknowledged that it keeps the message. It honours ctx, which ends
// after the relay's PublishTimeout. Any other result is an error:
//
//   - one that wraps ErrUnreachable, where the broker could not be asked, or takes nothing of the topic at present: it costs the
//     event no attempt, and others of its topic wait with it;
//   - one made by Permanent, where no further attempt can help: the event becomes a dead letter at once;
//   - any other: the broker refused the message, which costs an attempt.
//
// An error's text is stored and logged, so it must not contain the payload or the key.
type Publisher interface {
	Publish(ctx context.Context, m *Message) error
}

// ErrUnreachable marks an error as the broker's trouble rather than the event's.
var ErrUnreachable = errors.New("outbox: broker unreachable")

// ErrPermanent is what errors.Is finds in an error made by Permanent.
var ErrPermanent = errors.New("outbox: permanent failure")

// Permanent marks err as one that no further attempt can mend. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &marked{err: err, mark: ErrPermanent}
}

// Unreachable marks err as the broker's trouble: it wraps err and ErrUnreachable. Unreachable(nil) is nil.
func Unreachable(err error) error {
	if err == nil {
		return nil
	}
	return &marked{err: err, mark: ErrUnreachable}
}

// marked keeps the text of err and adds a sentinel to what errors.Is finds.
type marked struct{ err, mark error }

func (e *marked) Error() string   { return e.err.Error() }
func (e *marked) Unwrap() []error { return []error{e.err, e.mark} }
