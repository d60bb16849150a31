package outboxnats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/outboxgen/outboxgen/runtime/outbox"
)

var _ outbox.BatchPublisher = (*Publisher)(nil)

const (
	// maxPending is how many messages of all batches may wait for an answer.
	maxPending = 1 << 16
	// maxPendingTime is how long the client remembers a message that nobody answers.
	maxPendingTime = 2 * time.Minute
)

// asynchronous returns a context that publishes without waiting for each answer, with limits of its
// own. A stream's domain or API prefix makes no difference to what is published.
//
// The client never sends a message again by itself here, and so does not read it any more once
// PublishBatch has returned. But it refers to a message without an answer until the connection is
// lost or maxPendingTime has passed.
func asynchronous(nc *nats.Conn) (jetstream.JetStream, error) {
	return jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(maxPending),
		jetstream.WithPublishAsyncTimeout(maxPendingTime))
}

// PublishBatch implements outbox.BatchPublisher: it sends all messages, and then waits for the
// answer to each. Its errors are those of Publish.
func (p *Publisher) PublishBatch(ctx context.Context, messages []*outbox.Message) []error {
	if len(messages) == 0 {
		return nil
	}
	limited, cancel := p.withDeadline(ctx)
	defer cancel()
	topic := messages[0].Topic // that of all
	connected, release := p.watch.whileConnected(limited, p.js.Conn(), topic)
	defer release()
	b := &batch{
		Publisher: p, ctx: ctx, connected: connected, messages: messages,
		errs: make([]error, len(messages)),
	}
	all := make([]int, len(messages))
	for i := range all {
		all[i] = i
	}
	unheard := b.publish(all)
	for n := 1; n < p.attempts && len(unheard) > 0 && pause(connected, p.retryDelay); n++ {
		unheard = b.publish(unheard)
	}
	if len(unheard) > 0 {
		err := b.unanswered(jetstream.ErrNoStreamResponse)
		for _, i := range unheard {
			b.errs[i] = err
		}
	}
	return b.errs
}

// withDeadline bounds a publish whose caller does not, as the client itself does for single ones.
func (p *Publisher) withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, p.js.Options().DefaultTimeout)
}

// pause waits for d. It returns false if ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// batch is one call of PublishBatch.
type batch struct {
	*Publisher
	ctx       context.Context // the caller's
	connected context.Context // see watch.whileConnected
	messages  []*outbox.Message
	errs      []error // by message
}

// publish sends the messages of these numbers, and waits for their answers. It returns those that
// nobody on the subject listened to, as happens for a moment while a stream elects a leader.
func (b *batch) publish(numbers []int) (unheard []int) {
	for n, answer := range b.send(numbers) {
		if answer == nil {
			continue
		}
		i := numbers[n]
		switch ack, came, err := await(b.connected, answer); {
		case !came:
			b.errs[i] = b.unanswered(context.Cause(b.connected))
		case errors.Is(err, jetstream.ErrNoStreamResponse):
			unheard = append(unheard, i)
		default: // whatever has become of the context or the connection since it came
			ctx := context.Background()
			b.errs[i] = b.outcome(ctx, ctx, b.messages[i].Topic, ack, err)
		}
	}
	return unheard
}

// unanswered returns what it means to the relay that messages got no answer.
func (b *batch) unanswered(err error) error {
	return b.outcome(b.ctx, b.connected, b.messages[0].Topic, nil, err)
}

// send sends messages, and returns what their answers will be: nil for those that were not sent.
// Once the broker cannot be reached, or the context has ended, the others are not tried.
func (b *batch) send(numbers []int) []jetstream.PubAckFuture {
	answers := make([]jetstream.PubAckFuture, len(numbers))
	var broken error
	for n, i := range numbers {
		if broken == nil && b.connected.Err() != nil {
			broken = b.unanswered(context.Cause(b.connected))
		}
		if broken != nil {
			b.errs[i] = broken
			continue
		}
		answers[n], b.errs[i] = b.sendOne(b.messages[i])
		if errors.Is(b.errs[i], outbox.ErrUnreachable) {
			broken = b.errs[i]
		}
	}
	return answers
}

func (b *batch) sendOne(m *outbox.Message) (jetstream.PubAckFuture, error) {
	msg, err := messageOf(m)
	if err != nil {
		return nil, outbox.Permanent(fmt.Errorf("outboxnats: publish: %w", err))
	}
	if err := b.ready(); err != nil {
		return nil, outbox.Unreachable(fmt.Errorf("outboxnats: publish: %w", err))
	}
	answer, err := b.async.PublishMsgAsync(msg, jetstream.WithRetryAttempts(0))
	if err != nil {
		if lost := b.ready(); lost != nil { // the client does not say so of its first message
			err = fmt.Errorf("%w: %w", err, lost)
			return nil, outbox.Unreachable(fmt.Errorf("outboxnats: publish: %w", err))
		}
		return nil, classify(b.ctx, fmt.Errorf("outboxnats: publish: %w", err))
	}
	return answer, nil
}

// await waits for an answer. One that has come counts, even if ctx has ended.
func await(
	ctx context.Context, answer jetstream.PubAckFuture,
) (ack *jetstream.PubAck, came bool, err error) {
	select {
	case ack = <-answer.Ok(): // mostly
		return ack, true, nil
	default:
	}
	select {
	case ack = <-answer.Ok():
		return ack, true, nil
	case err = <-answer.Err():
		return nil, true, err
	case <-ctx.Done():
	}
	select {
	case ack = <-answer.Ok():
		return ack, true, nil
	case err = <-answer.Err():
		return nil, true, err
	default:
		return nil, false, nil
	}
}
