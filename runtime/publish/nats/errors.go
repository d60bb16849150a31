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

var errClosed = fmt.Errorf("the NATS connection is closed for good, and a restart is needed; "+
	"connect with nats.MaxReconnects(-1): %w", outbox.ErrPublisherClosed)

// unreachable are errors of the client that mean a broker which could not be asked.
var unreachable = []error{
	nats.ErrConnectionClosed, nats.ErrConnectionDraining, nats.ErrConnectionReconnecting,
	nats.ErrDisconnected,
	nats.ErrPermissionViolation, nats.ErrReconnectBufExceeded, nats.ErrStaleConnection,
	nats.ErrNoServers, nats.ErrTimeout, nats.ErrInvalidConnection,
	jetstream.ErrTooManyStalledMsgs, jetstream.ErrAsyncPublishTimeout,
	jetstream.ErrJetStreamNotEnabled, jetstream.ErrJetStreamNotEnabledForAccount,
	context.DeadlineExceeded, // of the client's own, if ctx has none
}

// permanent are those that no retry mends.
var permanent = []error{
	nats.ErrMaxPayload, nats.ErrBadSubject, nats.ErrBadHeaderMsg, jetstream.ErrInvalidSubject,
}

const codeMessageTooLarge jetstream.ErrorCode = 10054

// unavailable are those of the server's error codes (nats-server, server/errors.json) that would
// meet any message.
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

// classify marks err as outbox.Publisher asks for.
func classify(ctx context.Context, err error) error {
	code, tooLarge := jetstream.ErrorCode(0), false
	if api := (*jetstream.APIError)(nil); errors.As(err, &api) {
		code = api.ErrorCode
		// The description comes with the code of a full stream.
		tooLarge = code == codeMessageTooLarge || api.Description == "message too large"
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
