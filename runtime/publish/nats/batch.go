package outboxnats

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/outboxgen/outboxgen/runtime/outbox"
)

var _ outbox.BatchPublisher = (*Publisher)(nil)

// maxPending is how many messages of all batches may wait for an answer. Those whose answer was
// lost count until the client reconnects.
const maxPending = 1 << 16

// asynchronous returns a context of the same JetStream that publishes without waiting for each
// answer. It has a limit of its own on what is pending, and leaves the caller's alone.
func asynchronous(js jetstream.JetStream) (jetstream.JetStream, error) {
	limit := jetstream.WithPublishAsyncMaxPending(maxPending)
	switch o := js.Options(); {
	case o.Domain != "":
		return jetstream.NewWithDomain(js.Conn(), o.Domain, limit)
	case o.APIPrefix != "" && o.APIPrefix != jetstream.DefaultAPIPrefix:
		return jetstream.NewWithAPIPrefix(js.Conn(), o.APIPrefix, limit)
	default:
		return jetstream.New(js.Conn(), limit)
	}
}

// PublishBatch implements outbox.BatchPublisher: it sends all messages, and then waits for the
// answer to each. Its errors are those of Publish.
func (p *Publisher) PublishBatch(ctx context.Context, batch []*outbox.Message) []error {
	errs := make([]error, len(batch))
	if len(batch) == 0 {
		return errs
	}
	topic := batch[0].Topic // that of all
	connected, release := p.watch.whileConnected(ctx, p.js.Conn(), topic)
	defer release()
	answers := make([]jetstream.PubAckFuture, len(batch))
	for i, m := range batch {
		answers[i], errs[i] = p.send(m)
	}
	silent := false
	for i, answer := range answers {
		if answer == nil {
			continue
		}
		ack, err := await(connected, answer)
		if errors.Is(err, jetstream.ErrNoStreamResponse) {
			errs[i], silent = err, true
			continue
		}
		errs[i] = p.outcome(ctx, connected, topic, ack, err)
	}
	if silent {
		p.publishAgain(ctx, batch, errs)
	}
	return errs
}

// send sends a message, and returns what its answer will be.
func (p *Publisher) send(m *outbox.Message) (jetstream.PubAckFuture, error) {
	msg, err := messageOf(m)
	if err != nil {
		return nil, outbox.Permanent(fmt.Errorf("outboxnats: publish: %w", err))
	}
	if err := p.ready(); err != nil {
		return nil, outbox.Unreachable(fmt.Errorf("outboxnats: publish: %w", err))
	}
	answer, err := p.async.PublishMsgAsync(msg, jetstream.WithRetryAttempts(0))
	if err != nil {
		return nil, classify(context.Background(), fmt.Errorf("outboxnats: publish: %w", err))
	}
	return answer, nil
}

// await waits for an answer.
func await(ctx context.Context, answer jetstream.PubAckFuture) (*jetstream.PubAck, error) {
	select {
	case ack := <-answer.Ok():
		return ack, nil
	case err := <-answer.Err():
		return nil, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// publishAgain publishes singly what nobody answered, as may happen while a stream elects a leader.
// Once that cannot be reached, nor can the others.
func (p *Publisher) publishAgain(ctx context.Context, batch []*outbox.Message, errs []error) {
	var unreachable error
	for i, err := range errs {
		if !errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, outbox.ErrUnreachable) {
			continue
		}
		if unreachable == nil {
			err = p.Publish(ctx, batch[i])
		} else {
			err = unreachable
		}
		errs[i] = err
		if errors.Is(err, outbox.ErrUnreachable) {
			unreachable = err
		}
	}
}
