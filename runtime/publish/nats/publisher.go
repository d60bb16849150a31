// Package outboxnats carries events over NATS JetStream: a publisher for the relay, and a
// subscriber for an inbox.
package outboxnats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// PublisherConfig says how a Publisher works. The zero value of every field stands for its default.
type PublisherConfig struct {
	// MaxAttempts is how many times a message is sent while nobody answers on its subject, as
	// happens for a moment while a stream elects a leader. After the last one Publish returns an
	// error that wraps outbox.ErrUnreachable. Defaults to 3; 1 sends a message once.
	MaxAttempts int
	// RetryDelay is the time between these attempts. Defaults to 250 ms.
	RetryDelay time.Duration
}

func (c PublisherConfig) withDefaults() PublisherConfig {
	c.MaxAttempts = cmp.Or(c.MaxAttempts, 3)
	c.RetryDelay = cmp.Or(c.RetryDelay, 250*time.Millisecond)
	return c
}

func (c PublisherConfig) validate() error {
	var errs []error
	if c.MaxAttempts < 1 {
		errs = append(errs, fmt.Errorf(
			"outboxnats: config: MaxAttempts is %d, at least 1 is needed", c.MaxAttempts))
	}
	if c.RetryDelay < 0 {
		errs = append(errs, fmt.Errorf(
			"outboxnats: config: RetryDelay is %v, which is negative", c.RetryDelay))
	}
	return errors.Join(errs...)
}

// Publisher publishes to JetStream. The topic of an event is the subject. Its id and type are the
// message id (Nats-Msg-Id), so that a stream drops what is published twice within its duplicate
// window, and keeps every version of an event. Events are CloudEvents 1.0 in binary mode. A
// Publisher is safe for concurrent use.
type Publisher struct {
	js         jetstream.JetStream
	async      jetstream.JetStream // for batches
	attempts   int
	retryDelay time.Duration
	watch      watch
}

var _ outbox.Publisher = (*Publisher)(nil)

// NewPublisher returns a publisher on a connection that the caller keeps open, and closes. Let it
// reconnect for ever (nats.MaxReconnects(-1)), since a connection that has given up stays closed.
// NewPublisher refuses a configuration that contradicts itself.
//
// To learn that a subject is not permitted, it puts a handler for asynchronous errors in front of
// the connection's own, which is called as before. A handler that is set later takes its place, and
// such a publish then ends with its context. Make one publisher for a connection.
func NewPublisher(js jetstream.JetStream, config PublisherConfig) (*Publisher, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	async, err := asynchronous(js.Conn())
	if err != nil {
		return nil, fmt.Errorf("outboxnats: new publisher: %w", err)
	}
	p := &Publisher{
		js: js, async: async, attempts: config.MaxAttempts, retryDelay: config.RetryDelay,
	}
	nc := js.Conn()
	own := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		p.watch.denied(err)
		if own != nil {
			own(nc, sub, err)
		}
	})
	return p, nil
}

// Publish returns nil once a stream has acknowledged that it keeps the message. Its errors wrap
//
//   - outbox.ErrUnreachable without a connection, if JetStream or the stream's leader does not
//     answer, no stream listens to the subject, the user may not publish to it, or it, the account
//     or the server is full: all events of a topic would fail alike, and none is to blame. While
//     the client is reconnecting that comes at once, and nothing is buffered;
//   - outbox.ErrPublisherClosed besides, once the client has given up for good;
//   - outbox.ErrPermanent if the message exceeds the server's or the stream's limit, the topic is
//     no valid subject, or a header would give orders to the server (Nats-…);
//   - ctx.Err() if ctx ended first: the message may have been stored, and a second one with its id
//     is a duplicate;
//   - none of these if the message was refused, or the answer is not a stream's.
//
// Nothing of m is kept once Publish has returned.
func (p *Publisher) Publish(ctx context.Context, m *outbox.Message) error {
	msg, err := messageOf(m)
	if err != nil {
		return outbox.Permanent(fmt.Errorf("outboxnats: publish: %w", err))
	}
	connected, release := p.watch.whileConnected(ctx, p.js.Conn(), m.Topic)
	defer release()
	if err := p.ready(); err != nil {
		return outbox.Unreachable(fmt.Errorf("outboxnats: publish: %w", err))
	}
	ack, err := p.js.PublishMsg(connected, msg,
		jetstream.WithRetryAttempts(p.attempts-1), jetstream.WithRetryWait(p.retryDelay))
	return p.outcome(ctx, connected, m.Topic, ack, err)
}

// outcome returns what an answer, or its absence, means to the relay.
func (p *Publisher) outcome(
	ctx, connected context.Context, subject string, ack *jetstream.PubAck, err error,
) error {
	if err := p.explain(connected, subject, ack, err); err != nil {
		return classify(ctx, fmt.Errorf("outboxnats: publish: %w", err))
	}
	return nil
}

// ready returns why nothing can be sent now.
func (p *Publisher) ready() error {
	switch status := p.js.Conn().Status(); status {
	case nats.CONNECTED:
		return nil
	case nats.CLOSED:
		return errClosed
	default:
		return fmt.Errorf("the connection is %s", status)
	}
}

// explain returns nil if a stream has acknowledged a message, and otherwise what went wrong, as far
// as it can be found out. The context connected is that of the publish (watch.whileConnected).
func (p *Publisher) explain(
	connected context.Context, subject string, ack *jetstream.PubAck, err error,
) error {
	if err == nil && ack.Sequence == 0 {
		err = jetstream.ErrInvalidJSAck // of somebody who echoes payloads, perhaps
	}
	if errors.Is(err, jetstream.ErrNoStreamResponse) {
		err = p.explainSilence(connected, subject, err)
	}
	if err != nil && connected.Err() != nil {
		err = context.Cause(connected)
	}
	if last := p.js.Conn().LastError(); errors.Is(err, context.DeadlineExceeded) &&
		errors.Is(last, nats.ErrPermissionViolation) {
		// Perhaps it says that the user may not receive answers.
		err = fmt.Errorf("%w; the server's last error was: %w", err, last)
	}
	return err
}

// explainSilence asks JetStream whether there is a stream for the subject: nobody answers either
// way, while the server starts and when the stream is missing.
func (p *Publisher) explainSilence(ctx context.Context, subject string, silence error) error {
	_, err := p.js.StreamNameBySubject(ctx, subject)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return outbox.Unreachable(fmt.Errorf("no stream listens to the subject: %w", err))
	}
	return outbox.Unreachable(errors.Join(silence, err))
}
