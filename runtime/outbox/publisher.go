package outbox

import (
	"context"
	"errors"
)

// Publisher sends messages to a broker. The relay calls Publish from many goroutines at once, for
// one key from one at a time. A message is lent for the length of the call: Publish does not change
// it, its payload or its headers, and keeps none of them after it has returned. What has to stay,
// it copies.
//
// Publish returns nil if and only if the broker has acknowledged that it keeps the message. It
// returns soon after ctx ends, which is after the relay's PublishTimeout: one that does not holds
// back its event, some others of its topic, and the end of Run, though no other topic. Any other
// result is an error:
//
//   - one that wraps ErrUnreachable, if the broker could not be asked, or takes nothing of the
//     topic at present: it costs the event no attempt, and others of its topic wait with it;
//   - one made by Permanent, if no further attempt can help: the event becomes a dead letter at
//     once;
//   - one that wraps context.DeadlineExceeded or says that it is a time-out, or any but a permanent
//     one once the PublishTimeout has passed: nobody answered. That costs an attempt only if the
//     topic answered others meanwhile and no other was left without an answer, for then it is the
//     event that gets none;
//   - any other: the broker refused the message, which costs an attempt.
//
// An error's text is stored and logged, so it must not contain the payload or the key.
type Publisher interface {
	Publish(ctx context.Context, m *Message) error
}

// BatchPublisher is a Publisher that sends several messages for less than their sum. The relay then
// calls PublishBatch for what is ready at the moment, from a few goroutines, and Publish for single
// messages.
//
// A batch has up to 256 messages of one topic, and at most one of a key; no other call has that key
// meanwhile. So order within a batch means nothing, and a refusal lets no successor pass. The
// publisher does not wait for more messages, and neither changes nor keeps slice and messages once
// it has returned.
//
// It returns one outcome for each message, errs[i] for batch[i], which means what that of Publish
// does. A result of another length, or a panic, acknowledges nothing and is nobody's fault: the
// relay logs it and publishes the messages singly. An error that may be a neighbour's must not be
// Permanent: a broker that refuses a whole batch is to be asked for each message.
//
// It returns soon after ctx ends, which bounds the whole batch, with ctx.Err() for what has no
// outcome by then: it may be stored, now or later, and is published again.
type BatchPublisher interface {
	Publisher
	PublishBatch(ctx context.Context, batch []*Message) (errs []error)
}

// ErrUnreachable marks an error as the broker's trouble rather than the event's.
var ErrUnreachable = errors.New("outbox: broker unreachable")

// ErrPublisherClosed marks an error of a publisher whose client has given up and does not connect
// again by itself: only a restart helps. The relay says so in its log. Mark such an error as
// Unreachable, too.
var ErrPublisherClosed = errors.New("outbox: publisher closed for good")

// ErrPermanent is what errors.Is finds in an error made by Permanent.
var ErrPermanent = errors.New("outbox: permanent failure")

// Permanent marks err as one that no further attempt can mend. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &marked{err: err, mark: ErrPermanent}
}

// Unreachable marks err as the broker's trouble: it wraps err and ErrUnreachable. Unreachable(nil)
// is nil.
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
