package outbox

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// Relay publishes what the outbox holds. Several relays, in one process or many, share the shards out among themselves.
//
// A committed event is published until the broker has acknowledged it, or until it is a dead letter. Events of one key are
// published in order, and one waits while its predecessor is retried. A crash at any point loses nothing and may publish again
// with the same event id.
type Relay struct {
	store     Store
	publisher Publisher
	config    Config
	counters  counters
	health    *health
	backlog   atomic.Pointer[Backlog]
	current   atomic.Pointer[session]
}

// NewRelay returns a relay that does nothing until Run. It fails where the configuration contradicts itself.
func NewRelay(store Store, publisher Publisher, config Config) (*Relay, error) {
	if store == nil || publisher == nil {
		return nil, errors.New("outbox: a relay needs a store and a publisher")
	}
	config = config.withDefaults()
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
// and logs them. Before that it returns only an error that wraps ErrUnusable, which no retry mends.
// It must not run more than once at a time.
func (r *Relay) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	beside, stop := context.WithCancel(ctx)
	defer stop()
	wg.Go(func() { ForwardWakeups(beside, r.store) })
	rings := make(chan struct{}, 1)
	wg.Go(func() { r.listen(beside, rings) })
	wg.Go(func() { r.maintain(beside) })
	wg.Go(func() { r.countBacklog(beside) })
	for n := 1; ; n++ {
		joined, err := r.runSession(ctx, rings, false)
		if ctx.Err() != nil || errors.Is(err, ErrUnusable) {
			return err
		}
		if joined {
			r.config.Logger.Error("outbox: the relay restarts with nothing in memory", "error", err)
			n = 1
		}
		sleep(ctx, backoff(n, time.Second, 15*time.Second))
	}
}

// RunOnce joins, publishes what is due in the shards that are free, settles it, leaves and returns what it did. It waits for no
// retry that is not due. An error means that it stopped before the end; nothing is lost then.
func (r *Relay) RunOnce(ctx context.Context) (Stats, error) {
	before := r.Stats()
	_, err := r.runSession(ctx, nil, true)
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
	listener, ok := r.store.(Listener)
	if !ok {
		return
	}
	for n := 1; ctx.Err() == nil; n++ {
		ready := func() {
			n = 0
			if !r.counters.listening.Swap(true) {
				ringOnce(rings) // what was announced while nobody listened
			}
			r.health.report(ctx, listening, nil)
		}
		err := listener.Listen(ctx, ready, func() { ringOnce(rings) })
		r.counters.listening.Store(false)
		r.health.report(ctx, listening, err)
		sleep(ctx, backoff(n+1, 100*time.Millisecond, 30*time.Second))
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
		r.health.report(ctx, tidying, bounded(ctx, r.store, maintainTimeout, r.store.Maintain))
		sleep(ctx, time.Minute+backoff(1, time.Second, time.Second))
	}
}

// runSession is the relay's life under one id: from joining until ctx ends, its lease is lost, or
// (once) there is nothing to do.
func (r *Relay) runSession(
	ctx context.Context, rings <-chan struct{}, once bool,
) (joined bool, _ error) {
	id, err := uuid.NewV7()
	if err != nil {
		return false, err
	}
	s := &session{Relay: r, id: id, ledger: newLedger(r.config)}
	err = s.join(ctx)
	if !errors.Is(err, ErrUnusable) { // which is not tried again
		r.health.report(ctx, joining, err)
	}
	if err != nil {
		if ctx.Err() != nil {
			return false, nil
		}
		return false, err
	}
	r.current.Store(s)
	defer r.current.Store(nil)
	return true, s.run(ctx, rings, once)
}
