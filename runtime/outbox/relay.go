package outbox

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/outboxgen/outboxgen/runtime/backoff"
	"github.com/outboxgen/outboxgen/runtime/outbox/internal/ledger"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// Relay publishes what the outbox holds. Several relays, in one process or many, share the shards out among themselves.
//
// A committed event is published until the broker has acknowledged it, or until it is a dead letter. Events of one key are
// published in order, and one waits while its predecessor is retried. A crash at any point loses nothing and may publish again
// with the same event id.
type Relay struct {
	store     storage.Store
	publisher Publisher
	config    Config
	counters  counters
	health    *health
	backlog   atomic.Pointer[Backlog]
	current   atomic.Pointer[session]
}

// NewRelay returns a relay that does nothing until Run. It fails where the configuration contradicts itself.
func NewRelay(store storage.Store, publisher Publisher, config Config) (*Relay, error) {
	if store == nil || publisher == nil {
		return nil, errors.New("outbox: a relay needs a store and a publisher")
	}
	config = config.withDefaults(publisher)
	if err := config.validate(); err != nil {
		return nil, err
	}
	return &Relay{
		store: store, publisher: publisher, config: config, health: newHealth(config.Logger),
	}, nil
}

// Run publishes until ctx ends. Then it finishes the publishes that are under way, settles them and
// gives its shards back, within the Lease, or three times the PublishTimeout if that is longer; it
// returns what went wrong with that, or nil. It survives outages of the database and the broker,
// and logs them. Before that it returns only an error that wraps ErrUnusable, which no retry mends;
// with WaitForSchema it waits for a migration that is missing.
// It must not run more than once at a time.
func (r *Relay) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	beside, stop := context.WithCancel(ctx)
	defer stop()
	wg.Go(func() { ForwardWakeups(beside, r.store) })
	rings := make(chan struct{}, 1)
	wg.Go(func() { r.listen(beside, rings) })
	usable := sync.OnceFunc(func() {
		wg.Go(func() { r.maintain(beside) })
		wg.Go(func() { r.countBacklog(beside) })
	})
	for n := 1; ; n++ {
		joined, err := r.runSession(ctx, rings, false, usable)
		if ctx.Err() != nil || r.isFinal(err) {
			return err
		}
		if joined {
			r.config.Logger.Error("outbox: the relay restarts with nothing in memory", "error", err)
			n = 1
		}
		sleep(ctx, backoff.Delay(n, time.Second, 15*time.Second))
	}
}

// isFinal reports whether it is pointless to join again.
func (r *Relay) isFinal(err error) bool {
	return errors.Is(err, ErrUnusable) &&
		!(r.config.WaitForSchema && errors.Is(err, ErrMigrationMissing))
}

// RunOnce joins, publishes what is due in the shards that are free, settles it, leaves and returns what it did. It waits for no
// retry that is not due. An error means that it stopped before the end; nothing is lost then.
func (r *Relay) RunOnce(ctx context.Context) (Stats, error) {
	before := r.Stats()
	_, err := r.runSession(ctx, nil, true, func() {})
	s := r.Stats()
	s.Published -= before.Published
	s.Retried -= before.Retried
	s.Dead -= before.Dead
	s.LostSettles -= before.LostSettles
	s.LeasesLost -= before.LeasesLost
	return s, errors.Join(err, ctx.Err())
}

// listen keeps a listener alive, and rings when it hears something.
func (r *Relay) listen(ctx context.Context, rings chan struct{}) {
	for n := 1; ctx.Err() == nil; n++ {
		ready := func() {
			n = 0
			if !r.counters.listening.Swap(true) {
				notify(rings) // what was announced while nobody listened
			}
			r.health.report(ctx, listening, nil)
		}
		_, err := r.store.Listen(ctx,
			storage.ListenParams{Ready: ready, Ring: func() { notify(rings) }})
		r.counters.listening.Store(false)
		if errors.Is(err, storage.ErrUnsupported) {
			return
		}
		r.health.report(ctx, listening, err)
		sleep(ctx, backoff.Delay(n+1, 100*time.Millisecond, 30*time.Second))
	}
}

// What the relay does, as its log says it.
const (
	joining  = "joining the relays"
	renewing = "renewing the lease"
	reading  = "reading events"
	settling = "settling events"
	// An event that the database refuses to settle is tried by itself.
	settlingAlone = "settling an event by itself"
	listening     = "listening for other processes (polling carries on)"
	tidying       = "maintenance of the tables"
	counting      = "counting the backlog"
)

const maintainTimeout = time.Minute

// maintain has the store tidy up, now and about once a minute.
func (r *Relay) maintain(ctx context.Context) {
	for ctx.Err() == nil {
		r.health.report(ctx, tidying, bounded(ctx, r.store, maintainTimeout,
			func(ctx context.Context) error {
				_, err := r.store.Maintain(ctx, storage.MaintainParams{})
				return err
			}))
		sleep(ctx, time.Minute+backoff.Jitter(time.Second))
	}
}

// runSession is the relay's life under one id: from joining until ctx ends, its lease is lost, or
// (once) there is nothing to do. It calls usable when it has joined.
func (r *Relay) runSession(
	ctx context.Context, rings <-chan struct{}, once bool, usable func(),
) (joined bool, _ error) {
	id, err := uuid.NewV7()
	if err != nil {
		return false, err
	}
	s := &session{Relay: r, id: id, ledger: r.newLedger()}
	err = s.join(ctx)
	if !r.isFinal(err) {
		r.health.report(ctx, joining, err)
	}
	if err != nil {
		if ctx.Err() != nil {
			return false, nil
		}
		return false, err
	}
	usable()
	r.current.Store(s)
	defer r.current.Store(nil)
	return true, s.run(ctx, rings, once)
}

// newLedger returns what a relay knows at first: nothing.
func (r *Relay) newLedger() *ledger.Ledger {
	c := ledger.Config{
		MaxEvents: r.config.MaxInFlight, MaxBytes: r.config.MaxInFlightBytes,
		MinRetryDelay: r.config.MinRetryDelay, MaxRetryDelay: r.config.MaxRetryDelay,
		Workers: min(r.config.Concurrency, r.config.MaxInFlight), BatchSize: r.batchSize(),
		Report: func(c ledger.TopicChange) { logTopic(r.config.Logger, c) },
	}
	if r.config.MaxAttempts != Unlimited {
		c.MaxAttempts = int32(min(r.config.MaxAttempts, math.MaxInt32))
	}
	return ledger.New(c)
}

// logTopic says how a topic fares.
func logTopic(logger *slog.Logger, c ledger.TopicChange) {
	switch {
	case c.GaveUp:
		logger.Error("outbox: the publisher has given up for good, nothing is published before a "+
			"restart", "error", c.Err)
	case c.Err != nil:
		logger.Warn("outbox: a topic cannot be reached: its events wait, and one at a time "+
			"is tried",
			"topic", c.Topic, "error", c.Err, "try at least every", ledger.ProbeInterval)
	case c.Gone:
		logger.Info("outbox: nothing is pending any more of a topic that could not be reached",
			"topic", c.Topic, "after", c.After)
	default:
		logger.Info("outbox: a topic can be reached again", "topic", c.Topic, "after", c.After)
	}
}

// notify has whoever receives from c look once more.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it will be seen
	}
}
