// Package subscribe hands what a broker delivers to an inbox: it is what the subscribers of all
// brokers have in common. A broker's adapter implements [Source], which fetches messages, and
// [Receipt], which answers them; [Subscriber] does the rest: bounded concurrency, order per key,
// delays after failures, progress reports, counts, and a graceful end.
//
// It belongs between runtime/inbox, which applies an event once, and an adapter such as
// runtime/publish/nats. An adapter shows that it keeps its promises by passing
// conformance.TestSubscriber.
package subscribe

import (
	"context"
	"errors"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// Source is where messages come from: one member of a broker's consumer (group).
type Source interface {
	// Fetch asks the broker for up to n messages, waits a short while for the first of them, and
	// hands each to deliver, those of one key in the broker's order. It returns nil if the broker
	// answered, even if there was nothing to deliver. An error that wraps
	//
	//   - ErrNoAnswer says that the broker was silent, and that it may be asked again at once;
	//   - ErrConsumerGone says that nothing can be fetched any more, which ends Run.
	//
	// After any other error Fetch is called again after a pause. Fetch returns soon after ctx has
	// ended; what it delivers then is released. Run calls it from one goroutine.
	Fetch(ctx context.Context, n int, deliver func(*Delivery)) error
	// AckWait is how long the broker waits for an answer before it delivers a message again by
	// itself. 0 stands for a broker that does not do that.
	AckWait() time.Duration
}

var (
	// ErrNoAnswer says that a broker has not answered a fetch in time.
	ErrNoAnswer = errors.New("subscribe: the broker does not answer")
	// ErrConsumerGone says that the consumer does not exist any more, or that the connection to it
	// is closed for good. Nothing is answered after it, since an answer might reach a message of
	// another consumer that has the same name.
	ErrConsumerGone = errors.New("subscribe: the consumer is gone")
)

// Delivery is a message that a broker has handed out, and that waits for an answer.
type Delivery struct {
	// Message is the event, or nil if Err is set. It belongs to the handler: the adapter neither
	// keeps nor reuses anything of it.
	Message *outbox.Message
	// Err says why the message cannot be read. If it wraps cloudevents.ErrForeign, the message is
	// no event of an outbox and is rejected. After any other error it comes again after the
	// greatest delay: a newer release of its publisher may have written it, and one of this program
	// may be able to read it. The text must not contain the payload, the key or values of headers.
	Err error
	// Topic is where the message was published.
	Topic string
	// Sequence orders the deliveries of one key. A message that is delivered again has the sequence
	// that it had before. A broker whose messages have no such number counts them as they come.
	Sequence uint64
	// Attempt is how many times the message has been delivered, this time included.
	Attempt int
	// Receipt answers the broker.
	Receipt
}

// Receipt tells a broker what has become of a delivery. Of Ack, Nack, Release and Reject one is
// called, once. Extend may be called again and again, from another goroutine, and even after one of
// the others; it does nothing then.
//
// An error means that the broker may not have been told. It is logged, and nothing else is done:
// the broker is expected to deliver the message again.
type Receipt interface {
	// Ack says that the message is handled. It never has to come again.
	Ack(ctx context.Context) error
	// Nack has the message delivered again, to any member of the consumer, after delay.
	Nack(ctx context.Context, delay time.Duration) error
	// Release has the message delivered again, soon, and if possible to another member: this one
	// ends, and has not begun to handle it.
	Release(ctx context.Context) error
	// Reject says that the message is nothing that any member could handle. It must not come again.
	Reject(ctx context.Context, reason string) error
	// Extend says that the message is still being handled, or waits for its turn: the broker waits
	// for another AckWait before it delivers the message again.
	Extend(ctx context.Context) error
}
