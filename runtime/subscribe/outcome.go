package subscribe

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/outboxgen/outboxgen/runtime/backoff"
	"github.com/outboxgen/outboxgen/runtime/cloudevents"
	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/payload"
)

// accept puts a delivery into its lane, or answers at once if there is no event in it.
func (s *Subscriber) accept(ctx context.Context, l *lanes, d *Delivery) {
	if d.Err == nil {
		l.add(ctx, d)
		return
	}
	log := s.config.Logger.With("topic", d.Topic, "sequence", d.Sequence, "error", d.Err)
	if errors.Is(d.Err, cloudevents.ErrForeign) {
		s.counts.foreign.Add(1)
		log.WarnContext(ctx, "rejected a message that is no event of an outbox")
		logFailure(ctx, log, d.Reject(ctx, "no event of an outbox"))
		return
	}
	s.counts.malformed.Add(1)
	log.ErrorContext(ctx, "an event cannot be read", "attempt", d.Attempt)
	logFailure(ctx, log, d.Nack(ctx, s.config.MaxRetryDelay))
}

// handle has the inbox apply a delivery and answers the broker. It returns after which delay the
// message comes again, or 0 if it does not. It calls stop if the database cannot be used.
func (s *Subscriber) handle(
	ctx context.Context, l *lanes, d *Delivery, stop context.CancelCauseFunc,
) time.Duration {
	handling, cancel := context.WithTimeout(ctx, s.config.HandleTimeout)
	defer cancel()
	outcome, err := s.handler.Handle(handling, d.Message)
	if l.consumerGone.Load() {
		return 0
	}
	ctx = context.WithoutCancel(ctx)
	log := s.config.Logger.With("event", d.Message.TypeName(), "id", d.Message.ID)
	if s.isFinal(err) {
		stop(err)
	}
	if err != nil {
		return s.nack(ctx, log, d, err)
	}
	switch outcome {
	case inbox.OutcomeIgnored:
		s.counts.ignored.Add(1)
		if s.ignoredTypes.first(d.Message.TypeName()) {
			log.InfoContext(ctx, "the consumer does not handle events of this type: they are "+
				"acknowledged, and logged this once")
		}
	case inbox.OutcomeDuplicate:
		s.counts.duplicates.Add(1)
		s.counts.acknowledged.Add(1)
	default:
		s.counts.acknowledged.Add(1)
	}
	logFailure(ctx, log, d.Ack(ctx))
	return 0
}

// isFinal reports whether it is pointless to try again.
func (s *Subscriber) isFinal(err error) bool {
	return errors.Is(err, outbox.ErrUnusable) &&
		!(s.config.WaitForSchema && errors.Is(err, outbox.ErrMigrationMissing))
}

// nack has a delivery that was not handled come again, and returns after which delay.
func (s *Subscriber) nack(
	ctx context.Context, log *slog.Logger, d *Delivery, err error,
) time.Duration {
	f := s.failureOf(d, err)
	var p *inbox.PanicError
	if errors.As(err, &p) {
		log = log.With("stack", p.Stack)
	}
	log.Log(ctx, f.level, "an event was not applied",
		"error", err, "attempt", d.Attempt, "delay", f.delay)
	f.count.Add(1)
	logFailure(ctx, log, d.Nack(ctx, f.delay))
	return f.delay
}

// failure is what follows from an error.
type failure struct {
	count *atomic.Int64
	level slog.Level
	delay time.Duration
}

const (
	// inFlightDelay bounds the delay while another delivery of the event is being handled, which
	// does not take long as a rule.
	inFlightDelay = 500 * time.Millisecond
	// These bound the delay of an event in an unknown version: it comes again soon while a
	// deployment is under way, and never so late that the process that knows it would have to wait.
	minVersionDelay = 250 * time.Millisecond
	maxVersionDelay = 15 * time.Second
)

func (s *Subscriber) failureOf(d *Delivery, err error) failure {
	least, most := s.config.MinRetryDelay, s.config.MaxRetryDelay
	switch {
	case errors.Is(err, inbox.ErrInFlight):
		return failure{&s.counts.retried, slog.LevelDebug, backoff.Jitter(inFlightDelay)}
	case errors.Is(err, inbox.ErrUnknownVersion):
		level := slog.LevelDebug
		if s.unknownTypes.first(d.Message.TypeName()) {
			level = slog.LevelWarn
		}
		delay := backoff.Delay(d.Attempt, minVersionDelay, min(maxVersionDelay, most))
		return failure{&s.counts.unknownVersion, level, delay}
	case isUndecodable(err):
		return failure{&s.counts.malformed, slog.LevelError, backoff.Delay(d.Attempt, least, most)}
	default:
		return failure{&s.counts.retried, slog.LevelWarn, backoff.Delay(d.Attempt, least, most)}
	}
}

// isUndecodable reports whether err is about the payload that arrived, and not about one that the
// handler enqueued.
func isUndecodable(err error) bool {
	var p *payload.Error
	var e *outbox.EventError
	return errors.As(err, &p) && !errors.As(err, &e)
}

// logFailure logs that the broker may not have been told what became of a message.
func logFailure(ctx context.Context, log *slog.Logger, err error) {
	if err != nil {
		log.WarnContext(ctx, "the broker was not told", "error", err)
	}
}
