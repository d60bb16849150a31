package outbox

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	"github.com/outboxgen/outboxgen/runtime/outbox/internal/ledger"
)

// batchSize is how many messages a BatchPublisher is given at once, at most.
const batchSize = 256

// ledgerConfig returns what a session'w ledger has to know.
func ledgerConfig(config Config, publisher Publisher) ledger.Config {
	c := ledger.Config{
		MaxEvents: config.MaxInFlight, MaxBytes: config.MaxInFlightBytes,
		MinRetryDelay: config.MinRetryDelay, MaxRetryDelay: config.MaxRetryDelay,
		Workers: min(config.Concurrency, config.MaxInFlight), BatchSize: 1,
		Report: func(c ledger.TopicChange) { logTopic(config.Logger, c) },
	}
	if config.MaxAttempts != Unlimited {
		c.MaxAttempts = int32(min(config.MaxAttempts, math.MaxInt32))
	}
	if _, ok := publisher.(BatchPublisher); ok {
		c.BatchSize = batchSize
	}
	return c
}

// worker publishes.
type worker struct{ *core }

// run makes one attempt after the other, until the ledger is drained.
func (w worker) run(ctx context.Context) {
	var outcomes []ledger.Outcome
	for a := w.ledger.Next(nil, nil); a != nil; a = w.ledger.Next(a, outcomes) {
		outcomes = w.attempt(ctx, a)
	}
}

// attempt publishes events. One that may have ended a relay has its attempt charged before.
func (w worker) attempt(ctx context.Context, a *ledger.Attempt) []ledger.Outcome {
	if a.Charge && w.mayPublish(ctx) {
		e := a.Events[0]
		if err := w.charge(ctx, e.Item); err != nil {
			w.config.Logger.Warn("outbox: an attempt was not charged, and not made",
				"id", e.ID, "error", err)
			return notTried(a)
		}
		a.Charged()
	}
	if !w.mayPublish(ctx) {
		return notTried(a)
	}
	if len(a.Events) > 1 {
		if outcomes, ok := w.publishBatch(ctx, a); ok {
			return outcomes
		}
	}
	return w.publishSingly(ctx, a)
}

// publishSingly publishes one event after the other. If one gets no answer, the rest is not tried:
// all of them would wait as long.
func (w worker) publishSingly(ctx context.Context, a *ledger.Attempt) []ledger.Outcome {
	outcomes := notTried(a)
	for i, e := range a.Events {
		if !w.mayPublish(ctx) {
			break
		}
		outcomes[i] = w.publishOne(ctx, &e.Message)
		if r := outcomes[i].Result; r == ledger.Unreachable || r == ledger.Silent {
			break
		}
	}
	return outcomes
}

// mayPublish reports whether enough of the lease is left for a publish.
func (w worker) mayPublish(ctx context.Context) bool {
	return ctx.Err() == nil && w.lease.left() >= w.config.PublishTimeout
}

func notTried(a *ledger.Attempt) []ledger.Outcome {
	outcomes := make([]ledger.Outcome, len(a.Events))
	for i := range outcomes {
		outcomes[i].Result = ledger.NotTried
	}
	return outcomes
}

// publishOne ends before the lease does, since there was enough of it left. A publisher that panics
// has refused the event.
func (w worker) publishOne(ctx context.Context, m *Message) (o ledger.Outcome) {
	ctx, cancel := context.WithTimeout(ctx, w.config.PublishTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err := fmt.Errorf("the publisher panicked: %T", p) // its value may be the payload
			w.config.Logger.Error("outbox: the publisher panicked",
				"id", m.ID, "type", m.TypeName(), "stack", string(debug.Stack()))
			o = ledger.Outcome{Result: ledger.Refused, Err: err}
		}
	}()
	return outcomeOf(ctx, w.publisher.Publish(ctx, m))
}

// publishBatch publishes several events at once. It returns false if nothing can be said of any of
// them: the publisher panicked, or did not return an outcome for each.
func (w worker) publishBatch(
	ctx context.Context, a *ledger.Attempt,
) (outcomes []ledger.Outcome, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, w.config.PublishTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			w.config.Logger.Error("outbox: the publisher panicked: the events of the batch are "+
				"published one by one", "events", len(a.Events), "panic", fmt.Sprintf("%T", p),
				"stack", string(debug.Stack()))
			outcomes, ok = nil, false
		}
	}()
	batch := make([]*Message, len(a.Events))
	for i, e := range a.Events {
		batch[i] = &e.Message
	}
	errs := w.publisher.(BatchPublisher).PublishBatch(ctx, batch)
	if len(errs) != len(batch) {
		w.config.Logger.Error("outbox: the publisher did not return an outcome for each event of "+
			"the batch: they are published one by one",
			"events", len(batch), "outcomes", len(errs))
		return nil, false
	}
	outcomes = make([]ledger.Outcome, len(errs))
	for i, err := range errs {
		outcomes[i] = outcomeOf(ctx, err)
	}
	return outcomes, true
}

// outcomeOf says what an error of a publisher means. An error that comes once the time is up says
// that nobody answered, however the publisher puts it.
func outcomeOf(ctx context.Context, err error) ledger.Outcome {
	if err == nil {
		return ledger.Outcome{Result: ledger.Acknowledged}
	}
	o := ledger.Outcome{Err: err, GaveUp: errors.Is(err, ErrPublisherClosed)}
	switch {
	case errors.Is(err, ErrUnreachable):
		o.Result = ledger.Unreachable
	case errors.Is(err, ErrPermanent):
		o.Result = ledger.Impossible
	case timedOut(err), ctx.Err() == context.DeadlineExceeded:
		o.Result = ledger.Silent
	default:
		o.Result = ledger.Refused
	}
	return o
}

// timedOut reports whether an attempt ended since there was no answer, whoever gave up waiting.
func timedOut(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &timeout) && timeout.Timeout()
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
