// Package outboxnats carries events over NATS JetStream: a publisher for the relay, and a subscriber for an inbox.
package outboxnats

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// Publisher publishes to JetStream: an event's topic is the subject, its id and type are the
// message id (Nats-Msg-Id), so that a stream drops what is published twice within its duplicate
// window, and keeps every version of a fact. Events are CloudEvents 1.0 in binary mode. It is safe
// for concurrent use.
type Publisher struct {
	js    jetstream.JetStream
	watch watch
}

var _ outbox.Publisher = (*Publisher)(nil)

// NewPublisher returns a publisher on a connection that the caller keeps open, and closes. Let it reconnect for ever
// (nats.MaxReconnects(-1)), for a connection that has given up stays closed.
//
// To hear that a subject is not permitted, it puts a handler for asynchronous errors in front of
// the connection's own, which is called as before. A handler that is set later takes its place, and
// such a publish then ends with its context. Make one publisher for a connection.
func NewPublisher(js jetstream.JetStream) *Publisher {
	p := &Publisher{js: js}
	nc := js.Conn()
	own := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		p.watch.denied(err)
		if own != nil {
			own(nc, sub, err)
		}
	})
	return p
}

// Publish returns nil once a stream has acknowledged that it keeps the message. Its errors wrap
//
//   - outbox.ErrUnreachable without a connection, if JetStream or the stream's leader does not
//     answer, no stream listens to the subject, the user may not publish to it, or
//     it, the account or the server is full: all of a topic's events would fail alike, and
//     none is to blame. While the client is reconnecting that comes at once, and nothing is
//     buffered;
//   - outbox.ErrPublisherClosed besides, once the client has given up for good;
//   - outbox.ErrPermanent if the message exceeds the server's or the stream's limit, the topic
//     is no valid subject, or a header would give orders to the server (Nats-…);
//   - ctx.Err() if ctx ended first: the message may have been stored, and a second one with its
//     id is a duplicate;
//   - none of these if the message was refused, or the answer is not a stream's.
func (p *Publisher) Publish(ctx context.Context, m *outbox.Message) error {
	headers, err := headersOf(m)
	if err != nil {
		return outbox.Permanent(fmt.Errorf("outboxnats: publish: %w", err))
	}
	connected, release := p.watch.whileConnected(ctx, p.js.Conn(), m.Topic)
	defer release()
	switch status := p.js.Conn().Status(); status {
	case nats.CONNECTED:
	case nats.CLOSED:
		return outbox.Unreachable(errClosed)
	default:
		return outbox.Unreachable(fmt.Errorf("outboxnats: publish: the connection is %s", status))
	}
	msg := &nats.Msg{Subject: m.Topic, Header: headers, Data: m.Payload}
	ack, err := p.js.PublishMsg(connected, msg, jetstream.WithMsgID(messageID(m)))
	if err == nil && ack.Sequence == 0 {
		err = jetstream.ErrInvalidJSAck // of somebody who echoes payloads, perhaps
	}
	if errors.Is(err, jetstream.ErrNoStreamResponse) {
		err = p.explainSilence(connected, m.Topic, err)
	}
	if err != nil && connected.Err() != nil {
		err = context.Cause(connected)
	}
	if last := p.js.Conn().LastError(); errors.Is(err, context.DeadlineExceeded) &&
		errors.Is(last, nats.ErrPermissionViolation) {
		// Perhaps it says that the user may not hear answers.
		err = fmt.Errorf("%w; the server's last error was: %w", err, last)
	}
	if err != nil {
		return classify(ctx, fmt.Errorf("outboxnats: publish: %w", err))
	}
	return nil
}

var errClosed = fmt.Errorf("outboxnats: publish: the NATS connection is closed for good, and a "+
	"restart is needed; "+
	"connect with nats.MaxReconnects(-1): %w", outbox.ErrPublisherClosed)

// explainSilence asks JetStream whether there is a stream for the subject: nobody answers either way, while the server starts
// and when the stream is missing.
func (p *Publisher) explainSilence(ctx context.Context, subject string, silence error) error {
	_, err := p.js.StreamNameBySubject(ctx, subject)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return outbox.Unreachable(fmt.Errorf("no stream listens to the subject: %w", err))
	}
	return outbox.Unreachable(errors.Join(silence, err))
}

// unreachable are errors of the client that mean a broker which could not be asked.
var unreachable = []error{
	nats.ErrConnectionClosed, nats.ErrConnectionDraining, nats.ErrConnectionReconnecting, nats.ErrDisconnected,
	nats.ErrPermissionViolation, nats.ErrReconnectBufExceeded, nats.ErrStaleConnection,
	nats.ErrNoServers, nats.ErrTimeout, nats.ErrInvalidConnection,
	jetstream.ErrJetStreamNotEnabled, jetstream.ErrJetStreamNotEnabledForAccount,
	context.DeadlineExceeded, // of the client's own, where ctx has none
}

// permanent are those that no retry mends.
var permanent = []error{nats.ErrMaxPayload, nats.ErrBadSubject, nats.ErrBadHeaderMsg, jetstream.ErrInvalidSubject}

const codeMessageTooLarge jetstream.ErrorCode = 10054

// unavailable are those of the server's error codes (nats-server, server/errors.json) that would meet any message.
var unavailable = []jetstream.ErrorCode{
	10002, // resource limits exceeded for account
	10008, // JetStream system temporarily unavailable
	10009, // JetStream cluster can not handle request
	10023, // insufficient resources
	10028, // insufficient memory resources available
	10047, // insufficient storage resources available
	10077, // the stream could not store it: it is full, or its disk is
	10118, // stream is offline
}

func classify(ctx context.Context, err error) error {
	code, tooLarge := jetstream.ErrorCode(0), false
	if api := (*jetstream.APIError)(nil); errors.As(err, &api) {
		code = api.ErrorCode
		tooLarge = code == codeMessageTooLarge || api.Description == "message too large" // the latter comes with the code of a full stream
	}
	network := (*net.OpError)(nil)
	switch {
	case ctx.Err() != nil:
		return err
	case isAny(err, permanent), tooLarge:
		return outbox.Permanent(err)
	case isAny(err, unreachable), errors.As(err, &network), slices.Contains(unavailable, code):
		return outbox.Unreachable(err)
	default:
		return err
	}
}

func isAny(err error, targets []error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}
