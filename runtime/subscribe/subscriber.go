package subscribe

import (
	"context"
	"errors"
	"time"

	"github.com/outboxgen/outboxgen/runtime/backoff"
	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// Subscriber hands the messages of a Source to an inbox.
//
// It acknowledges a message once Handle has returned nil, which is after the commit. If the
// acknowledgement is lost, the message comes again and is a duplicate. A message whose handler
// failed comes again after a delay (a negative acknowledgement, nack), as often as it takes. A
// message that is no event of an outbox is rejected and logged; one that is, but cannot be read, is
// logged and comes again after the greatest delay.
//
// An event in a version that the consumer does not know, though it handles another one, is handed
// back for a process of another release that does, with a delay below 15 s. That is logged once for
// each type. Without such a process the event stays with the broker: run one.
//
// Events of one key are handled one after the other, in the order of Delivery.Sequence. While one
// of them is handed back, for whatever reason, its successors wait in memory. They stop waiting
// once the event is overdue by AckWait although the broker answers: another member may have it.
// Another version of the same event does not wait, since it may be the one that the consumer knows.
// All this holds within one Subscriber: a broker that shares out the messages of one key among
// several members does so without regard to keys.
//
// What it holds, it extends three times per AckWait, so that a handler may take longer than that.
type Subscriber struct {
	source  Source
	handler inbox.Handler
	config  Config

	counts                     counters
	ignoredTypes, unknownTypes onceEach // that were logged
}

// New returns a subscriber that does nothing before Run. It refuses a configuration that
// contradicts itself.
func New(source Source, handler inbox.Handler, config Config) (*Subscriber, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	return &Subscriber{source: source, handler: handler, config: config}, nil
}

// Run handles messages until ctx ends, and survives outages of the broker. Then it fetches nothing
// more, releases what has not begun, finishes and answers what is being handled, and returns nil.
//
// It returns an error that wraps ErrConsumerGone if nothing can be fetched any more. What was being
// handled is not acknowledged then. It returns an error that wraps outbox.ErrUnusable, in the same
// orderly way as when ctx ends, if the inbox says that no retry mends it: the tables are another
// service's, or not those that this release needs; with WaitForSchema it waits for a migration that
// is missing. Run may be called again once it has returned.
func (s *Subscriber) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	answering := context.WithoutCancel(ctx) // also while it drains
	work, cancelWork := context.WithCancel(answering)
	defer cancelWork()
	var l *lanes
	l = newLanes(s.config.Concurrency, s.source.AckWait(), func(d *Delivery) time.Duration {
		return s.handle(work, l, d, stop)
	})
	defer l.beginHeartbeats(answering)()
	defer context.AfterFunc(ctx, func() { l.stop(answering) })()
	err := s.fetch(ctx, l)
	l.consumerGone.Store(err != nil)
	l.stop(answering)
	defer time.AfterFunc(s.config.DrainTimeout, cancelWork).Stop()
	l.running.Wait()
	if cause := context.Cause(ctx); errors.Is(cause, outbox.ErrUnusable) {
		err = errors.Join(err, cause)
	}
	return err
}

const (
	minFetchPause = 100 * time.Millisecond
	maxFetchPause = 5 * time.Second
)

// fetch brings messages into the lanes until ctx ends or the consumer is gone.
func (s *Subscriber) fetch(ctx context.Context, l *lanes) error {
	deliver := func(d *Delivery) { s.accept(context.WithoutCancel(ctx), l, d) }
	for failures := 0; ctx.Err() == nil; {
		room := l.waitForRoom(ctx)
		if room == 0 {
			return nil
		}
		began := time.Now()
		err := s.source.Fetch(ctx, room, deliver)
		l.noteFetch(began, time.Now(), err == nil)
		switch {
		case err == nil, errors.Is(err, ErrNoAnswer), ctx.Err() != nil:
			failures = 0
			continue
		case errors.Is(err, ErrConsumerGone):
			return err
		}
		failures++
		pause := backoff.Delay(failures, minFetchPause, maxFetchPause)
		s.config.Logger.WarnContext(ctx, "fetching messages failed", "error", err, "pause", pause)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}
