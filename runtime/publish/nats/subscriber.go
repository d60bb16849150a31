package outboxnats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/payload"
)

// SubscriberConfig says how a Subscriber works. The zero value is ready to use.
type SubscriberConfig struct {
	// Concurrency is how many messages are handled at a time. Defaults to 16.
	Concurrency int
	// MinRetryDelay bounds the delay before the first redelivery; the bound doubles with each delivery. The delay is random below the
	// bound. Defaults to 1 s.
	MinRetryDelay time.Duration
	// MaxRetryDelay is the greatest bound. Defaults to 5 min.
	MaxRetryDelay time.Duration
	// HandleTimeout is how long a handler may take before its context ends, so that one which hangs gives the message back. Defaults
	// to 5 min.
	HandleTimeout time.Duration
	// DrainTimeout is how long Run waits for handlers once its context has ended, before it cancels theirs. Defaults to 30 s.
	DrainTimeout time.Duration
	// Logger gets a line for each message that was not handled. Defaults to slog.Default().
	Logger *slog.Logger
}

func (c SubscriberConfig) withDefaults() SubscriberConfig {
	c.Concurrency = cmp.Or(c.Concurrency, 16)
	c.MinRetryDelay = cmp.Or(c.MinRetryDelay, time.Second)
	c.MaxRetryDelay = cmp.Or(c.MaxRetryDelay, 5*time.Minute)
	c.HandleTimeout = cmp.Or(c.HandleTimeout, 5*time.Minute)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, 30*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// SubscriberStats are the numbers of deliveries so far, by how they ended. Each delivery counts in
// one of them; Duplicates says more of one. What Run hands back at its end counts in none.
type SubscriberStats struct {
	Acknowledged int64 // handled, or a duplicate
	Duplicates   int64 // of the acknowledged, those of which an earlier delivery had been handled
	// acknowledged, since the consumer does not handle the event in any version
	Ignored int64
	// handed back because they failed, or another delivery of the event was in flight
	Retried        int64
	UnknownVersion int64 // handed back for a process that knows the version
	Malformed      int64 // handed back because attributes or payload could not be read
	Foreign        int64 // terminated: no event of an outbox
}

// Subscriber hands the messages of a JetStream consumer to an inbox.
//
// It acknowledges a message once Handle has returned nil, that is after the commit. The acknowledgement is not confirmed: where it
// is lost, the message comes again and is a duplicate. Otherwise it hands the message back with a delay (a negative
// acknowledgement), for as often as it takes. A message that is no event of an outbox is terminated and logged; one that is,
// but cannot be read, is handed back with the greatest delay and logged, since it may be a newer publisher's.
//
// An event in a version that the consumer does not know, though it handles another one, is handed
// back for a process of another release that does, with a delay below 15 s. That is logged once for
// each type. Without such a process it stays in the stream: run one.
//
// Events of one key are handled one after the other, in the order in which the stream has them.
// While one of them is handed back, whatever for, its successors wait in memory, at most as many as
// the consumer's MaxAckPending; they give up waiting once it is overdue by the consumer's AckWait,
// while the broker answers. Once all of MaxAckPending waits, nothing else comes: make it larger
// than what failing keys pile up. This order holds within one Subscriber: several on one consumer
// share out messages without regard to keys. A delivery that is lost with its connection comes
// again after AckWait, behind its successors; only a MaxAckPending of 1 prevents that.
//
// What it holds, it reports as in progress, so that a handler may take longer than the consumer's AckWait.
type Subscriber struct {
	consumer jetstream.Consumer
	handler  inbox.Handler
	config   SubscriberConfig
	ackWait  time.Duration
	maxBatch int // messages that one pull may ask for

	acknowledged, duplicates, ignored, retried, unknownVersion, malformed, foreign atomic.Int64

	ignoredTypes, unknownTypes onceEach // that were logged
}

// NewSubscriber returns a subscriber for a consumer with explicit acknowledgement and without a limit on deliveries (MaxDeliver):
// with one, JetStream would drop what fails too often.
func NewSubscriber(consumer jetstream.Consumer, handler inbox.Handler, config SubscriberConfig) (*Subscriber, error) {
	name, c := consumer.CachedInfo().Name, consumer.CachedInfo().Config
	config = config.withDefaults()
	switch {
	case c.AckPolicy != jetstream.AckExplicitPolicy:
		return nil, fmt.Errorf("outboxnats: consumer %s: the acknowledgement policy is %s, not explicit", name, c.AckPolicy)
	case c.MaxDeliver > 0:
		return nil, fmt.Errorf("outboxnats: consumer %s: after %d deliveries (MaxDeliver) messages would be lost", name, c.MaxDeliver)
	case config.Concurrency < 0, config.HandleTimeout < 0, config.DrainTimeout < 0,
		config.MinRetryDelay < 0, config.MaxRetryDelay < config.MinRetryDelay:
		return nil, errors.New("outboxnats: a negative number in the configuration, or a MaxRetryDelay below MinRetryDelay")
	}
	ackWait := c.AckWait
	for _, wait := range c.BackOff {
		ackWait = min(ackWait, wait)
	}
	maxBatch := cmp.Or(c.MaxRequestBatch, math.MaxInt)
	return &Subscriber{consumer: consumer, handler: handler, config: config, ackWait: ackWait, maxBatch: maxBatch}, nil
}

// Stats returns the numbers of deliveries so far.
func (s *Subscriber) Stats() SubscriberStats {
	return SubscriberStats{
		Acknowledged: s.acknowledged.Load(), Duplicates: s.duplicates.Load(),
		Ignored: s.ignored.Load(),
		Retried: s.retried.Load(), UnknownVersion: s.unknownVersion.Load(),
		Malformed: s.malformed.Load(),
		Foreign:   s.foreign.Load(),
	}
}

// Run handles messages until ctx ends, and outlasts the broker's absence. Then it stops pulling, hands back what waits, finishes what
// is being handled, and returns nil. It returns an error where the connection was closed, or the consumer or its stream deleted: then what
// was being handled is not acknowledged.
func (s *Subscriber) Run(ctx context.Context) error {
	work, cancelWork := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelWork()
	var l *lanes
	l = newLanes(s.config.Concurrency, s.ackWait, func(d *delivery) time.Duration { return s.handle(work, l, d) })
	beating, stopBeating := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBeating()
	go l.heartbeats(beating)
	defer context.AfterFunc(ctx, l.stop)()
	err := s.pull(ctx, l)
	l.orphaned.Store(err != nil)
	l.stop()
	defer time.AfterFunc(s.config.DrainTimeout, cancelWork).Stop()
	l.running.Wait()
	return err
}

const (
	pullWait     = time.Second              // how long the server waits for messages, and so Run at its end
	silence      = pullWait + pullWait*9/10 // an answer takes less; the client gives up after two seconds and reports no error
	maxPullPause = 5 * time.Second
)

// pull brings messages into the lanes until ctx ends.
func (s *Subscriber) pull(ctx context.Context, l *lanes) error {
	for failures := 0; ctx.Err() == nil; {
		room := min(l.waitForRoom(ctx), s.maxBatch)
		if room == 0 {
			return nil
		}
		err := s.fetch(l, room)
		switch {
		case err == nil, errors.Is(err, jetstream.ErrConsumerLeadershipChanged), ctx.Err() != nil:
			failures = 0
			continue
		case isAny(err, over), errors.Is(err, nats.ErrNoResponders) && s.isGone(ctx):
			return fmt.Errorf("outboxnats: pull: %w", err)
		}
		failures++
		pause := s.delay(100*time.Millisecond, maxPullPause, failures)
		s.config.Logger.WarnContext(ctx, "pulling messages failed", "error", err, "pause", pause)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// over are errors after which no pull succeeds.
var over = []error{nats.ErrConnectionClosed, nats.ErrConnectionDraining, jetstream.ErrConsumerDeleted}

// isGone asks the broker whether the consumer is missing: only a pull that is under way is told that it was deleted, others find
// nobody who responds, as they do while the server starts.
func (s *Subscriber) isGone(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, pullWait)
	defer cancel()
	_, err := s.consumer.Info(ctx)
	return isAny(err, []error{jetstream.ErrConsumerNotFound, jetstream.ErrStreamNotFound})
}

// fetch brings up to room messages into the lanes.
func (s *Subscriber) fetch(l *lanes, room int) error {
	asked, some := time.Now(), false
	batch, err := s.consumer.Fetch(room, jetstream.FetchMaxWait(pullWait))
	if err == nil {
		for msg := range batch.Messages() {
			s.accept(l, msg)
			some = true
		}
		err = batch.Error()
	}
	l.pulled(asked, err == nil && (some || time.Since(asked) < silence))
	return err
}

// accept puts a message into its lane, or ends it where there is no event in it.
func (s *Subscriber) accept(l *lanes, msg jetstream.Msg) {
	meta, err := msg.Metadata()
	if err != nil {
		s.config.Logger.Error("a message is not of JetStream", "subject", msg.Subject(), "error", err)
		return
	}
	m, err := messageFrom(msg.Subject(), msg.Headers(), msg.Data())
	if err == nil {
		l.add(&delivery{Msg: msg, message: m, sequence: meta.Sequence.Stream, deliveries: meta.NumDelivered})
		return
	}
	log := s.config.Logger.With("subject", msg.Subject(), "stream_sequence", meta.Sequence.Stream, "error", err)
	if errors.Is(err, errForeign) {
		s.foreign.Add(1)
		log.Warn("terminated a message that is no event of an outbox")
		s.logFailure(log, msg.TermWithReason("no event of an outbox"))
		return
	}
	s.malformed.Add(1)
	log.Error("an event cannot be read", "delivery", meta.NumDelivered)
	s.logFailure(log, msg.NakWithDelay(s.config.MaxRetryDelay))
}

// handle returns after which delay the message comes again, or 0 if it does not.
func (s *Subscriber) handle(ctx context.Context, l *lanes, d *delivery) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, s.config.HandleTimeout)
	defer cancel()
	outcome, err := s.handler.Handle(ctx, d.message)
	if l.orphaned.Load() {
		return 0
	}
	log := s.config.Logger.With("event", d.message.TypeName(), "id", d.message.ID)
	if err != nil {
		return s.handBack(ctx, log, d, err)
	}
	switch outcome {
	case inbox.OutcomeIgnored:
		s.ignored.Add(1)
		if s.ignoredTypes.first(d.message.TypeName()) {
			log.Info("the consumer does not handle events of this type: they are acknowledged, " +
				"and logged this once")
		}
	case inbox.OutcomeDuplicate:
		s.duplicates.Add(1)
		s.acknowledged.Add(1)
	default:
		s.acknowledged.Add(1)
	}
	s.logFailure(log, d.Ack())
	return 0
}

const (
	// inFlightDelay bounds the delay while another delivery is being handled, which does not take
	// long as a rule.
	inFlightDelay = 500 * time.Millisecond
	// The bounds of the delay of an event in an unknown version: soon while a deploy is under way,
	// and never so late that the process that knows it would have to wait.
	minVersionDelay = 250 * time.Millisecond
	maxVersionDelay = 15 * time.Second
)

// handBack has a delivery that was not handled come again, and returns after which delay.
func (s *Subscriber) handBack(
	ctx context.Context, log *slog.Logger, d *delivery, err error,
) time.Duration {
	count, level, attempt := &s.retried, slog.LevelWarn, int(d.deliveries)
	delay := s.delay(s.config.MinRetryDelay, s.config.MaxRetryDelay, attempt)
	switch {
	case errors.Is(err, inbox.ErrInFlight):
		delay, level = s.delay(inFlightDelay, inFlightDelay, 1), slog.LevelDebug
	case errors.Is(err, inbox.ErrUnknownVersion):
		most := min(maxVersionDelay, s.config.MaxRetryDelay)
		count, delay = &s.unknownVersion, s.delay(min(minVersionDelay, most), most, attempt)
		if !s.unknownTypes.first(d.message.TypeName()) {
			level = slog.LevelDebug
		}
	case isUndecodable(err):
		count, level = &s.malformed, slog.LevelError
	}
	var p *inbox.PanicError
	if errors.As(err, &p) {
		log = log.With("stack", p.Stack)
	}
	log.Log(ctx, level, "an event was not applied", "error", err, "delivery", d.deliveries, "delay", delay)
	count.Add(1)
	s.logFailure(log, d.NakWithDelay(delay))
	return delay
}

// isUndecodable reports whether err is about the payload that arrived, and not about one that the
// handler enqueued.
func isUndecodable(err error) bool {
	var p *payload.Error
	var e *outbox.EventError
	return errors.As(err, &p) && !errors.As(err, &e)
}

// onceEach finds out which names come for the first time. It remembers a limited number of them,
// for strangers may make them up.
type onceEach struct {
	mu   sync.Mutex
	seen map[string]bool
}

const maxOnceEach = 1000

// first reports whether name was not asked for before. Once there are too many names, it never is.
func (o *onceEach) first(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen[name] || len(o.seen) >= maxOnceEach {
		return false
	}
	if o.seen == nil {
		o.seen = map[string]bool{}
	}
	o.seen[name] = true
	return true
}

// logFailure logs that an answer to the broker was not sent: the message will come again after AckWait.
func (s *Subscriber) logFailure(log *slog.Logger, err error) {
	if err != nil {
		log.Warn("the broker was not told", "error", err)
	}
}

// delay is random, above 0, below a bound that doubles with each attempt from least to most.
func (s *Subscriber) delay(least, most time.Duration, attempt int) time.Duration {
	bound := most
	if shift := attempt - 1; shift < 62 && least<<shift>>shift == least {
		bound = min(most, least<<shift)
	}
	return 1 + rand.N(max(bound, 1))
}
