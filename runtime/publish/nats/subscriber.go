package outboxnats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/outboxgen/outboxgen/runtime/cloudevents"
	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/subscribe"
)

// Subscriber hands the messages of a JetStream consumer to an inbox. What it promises is said at
// subscribe.Subscriber. For JetStream this means:
//
// Acknowledgements are not confirmed by the server: if one is lost, the message comes again and is
// a duplicate. A message that is no event of an outbox is terminated.
//
// What waits for an event that was handed back counts towards the consumer's MaxAckPending. Once
// all of that waits, nothing else comes: make it larger than what failing keys pile up. Several
// subscribers on one consumer share out messages without regard to keys. A delivery that is lost
// with its connection comes again after AckWait, behind its successors; only a MaxAckPending of 1
// prevents that.
//
// Run ends with an error if the connection was closed, or the consumer or its stream deleted.
type Subscriber = subscribe.Subscriber

// SubscriberConfig says how a Subscriber works. The zero value of every field stands for its
// default.
type SubscriberConfig = subscribe.Config

// SubscriberStats are the numbers of deliveries so far, by how they ended.
type SubscriberStats = subscribe.Stats

// NewSubscriber returns a subscriber for a consumer with explicit acknowledgement and without a
// limit on deliveries (MaxDeliver): with one, JetStream would drop what fails too often.
func NewSubscriber(
	consumer jetstream.Consumer, handler inbox.Handler, config SubscriberConfig,
) (*Subscriber, error) {
	name, c := consumer.CachedInfo().Name, consumer.CachedInfo().Config
	switch {
	case c.AckPolicy != jetstream.AckExplicitPolicy:
		return nil, fmt.Errorf("outboxnats: consumer %s: the acknowledgement policy is %s; "+
			"create it with AckExplicitPolicy", name, c.AckPolicy)
	case c.MaxDeliver > 0:
		return nil, fmt.Errorf("outboxnats: consumer %s: after %d deliveries (MaxDeliver) "+
			"messages would be lost; create it with a MaxDeliver of -1", name, c.MaxDeliver)
	}
	ackWait := c.AckWait
	for _, wait := range c.BackOff {
		ackWait = min(ackWait, wait)
	}
	s, err := subscribe.New(&source{
		consumer: consumer, ackWait: ackWait, maxFetch: cmp.Or(c.MaxRequestBatch, math.MaxInt),
	}, handler, config)
	if err != nil {
		return nil, fmt.Errorf("outboxnats: consumer %s: %w", name, err)
	}
	return s, nil
}

// source pulls messages of a consumer.
type source struct {
	consumer jetstream.Consumer
	ackWait  time.Duration
	maxFetch int // messages that one pull may ask for
}

// AckWait implements subscribe.Source.
func (s *source) AckWait() time.Duration { return s.ackWait }

const (
	// pullWait is how long the server waits for messages, and so Run at its end.
	pullWait = time.Second
	// silence is longer than an answer takes. The client gives up after two seconds, and reports no
	// error.
	silence = pullWait + pullWait*9/10
)

// Fetch implements subscribe.Source.
func (s *source) Fetch(ctx context.Context, n int, deliver func(*subscribe.Delivery)) error {
	began, some := time.Now(), false
	batch, err := s.consumer.Fetch(min(n, s.maxFetch), jetstream.FetchMaxWait(pullWait))
	if err == nil {
		for msg := range batch.Messages() {
			deliver(deliveryOf(msg))
			some = true
		}
		err = batch.Error()
	}
	switch {
	case err == nil && (some || time.Since(began) < silence):
		return nil
	case err == nil, errors.Is(err, jetstream.ErrConsumerLeadershipChanged):
		return subscribe.ErrNoAnswer
	case isAny(err, closed), errors.Is(err, nats.ErrNoResponders) && s.isGone(ctx):
		return fmt.Errorf("outboxnats: pull: %w: %w", subscribe.ErrConsumerGone, err)
	default:
		return fmt.Errorf("outboxnats: pull: %w", err)
	}
}

// closed are errors after which no pull succeeds.
var closed = []error{
	nats.ErrConnectionClosed, nats.ErrConnectionDraining, jetstream.ErrConsumerDeleted,
}

// isGone asks the broker whether the consumer is missing: only a pull that is under way is told
// that it was deleted. Others find nobody who responds, as they do while the server starts.
func (s *source) isGone(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, pullWait)
	defer cancel()
	_, err := s.consumer.Info(ctx)
	return isAny(err, []error{jetstream.ErrConsumerNotFound, jetstream.ErrStreamNotFound})
}

func deliveryOf(msg jetstream.Msg) *subscribe.Delivery {
	d := &subscribe.Delivery{Topic: msg.Subject(), Receipt: receipt{msg}}
	meta, err := msg.Metadata()
	if err != nil { // which no message of a consumer has
		d.Err = fmt.Errorf("%w: %w", cloudevents.ErrForeign, err)
		return d
	}
	d.Sequence, d.Attempt = meta.Sequence.Stream, int(meta.NumDelivered)
	d.Message, d.Err = eventOf(msg)
	return d
}

// receipt answers by publishing to the message's reply subject, and waits for nothing.
type receipt struct{ msg jetstream.Msg }

// Ack implements subscribe.Receipt.
func (r receipt) Ack(context.Context) error { return r.msg.Ack() }

// Nack implements subscribe.Receipt.
func (r receipt) Nack(_ context.Context, delay time.Duration) error {
	return r.msg.NakWithDelay(delay)
}

// Release implements subscribe.Receipt. The message comes once this subscriber's last pull has
// ended, which would get it otherwise.
func (r receipt) Release(context.Context) error { return r.msg.NakWithDelay(pullWait) }

// Reject implements subscribe.Receipt.
func (r receipt) Reject(_ context.Context, reason string) error {
	return r.msg.TermWithReason(reason)
}

// Extend implements subscribe.Receipt.
func (r receipt) Extend(context.Context) error { return r.msg.InProgress() }
