package outbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// publish is a worker: it publishes one event after the other, until the ledger is drained.
func (s *session) publish(life context.Context) {
	for e := s.ledger.take(nil, nil); e != nil; {
		e = s.ledger.take(e, s.attempt(life, e))
	}
}

// attempt publishes an event. One that may have ended a relay has its attempt charged before.
func (s *session) attempt(life context.Context, e *event) error {
	if life.Err() != nil || s.leaseLeft() < s.config.PublishTimeout {
		return errNotTried
	}
	if e.lone && !e.charged {
		if err := s.begin(life, e.Item); err != nil {
			s.config.Logger.Warn("outbox: an attempt was not charged, and not made", "id", e.ID, "error", err)
			return errNotTried
		}
		e.charged = true
	}
	return s.publishOne(life, e.Item)
}

// publishOne ends before the lease does, since there was enough of it left. A publisher that panics has refused the event.
func (s *session) publishOne(life context.Context, m *storage.Item) (err error) {
	ctx, cancel := context.WithTimeout(life, s.config.PublishTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the publisher panicked: %T", p) // its value may be the payload
			s.config.Logger.Error("outbox: the publisher panicked", "id", m.ID, "type", m.TypeName(), "stack", string(debug.Stack()))
		}
	}()
	err = s.publisher.Publish(ctx, &m.Message)
	if err != nil && ctx.Err() == context.DeadlineExceeded && !errors.Is(err, ErrPermanent) {
		err = &marked{err: err, mark: context.DeadlineExceeded} // however the publisher puts it
	}
	return err
}

const maxErrorBytes = 1000

// errorText makes an error fit for a text column.
func errorText(err error) string {
	s := strings.ReplaceAll(strings.ToValidUTF8(err.Error(), "�"), "\x00", "�")
	if len(s) <= maxErrorBytes {
		return s
	}
	cut := maxErrorBytes
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
