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
	return &Relay{store: store, publisher: publisher, config: config}, nil
}

// Run publishes until ctx ends. Then it finishes the publishes that are under way, settles them and gives its shards back, within
// three times the PublishTimeout, and returns nil. It outlives an unreachable database or broker; what it meets it reports to the Logger.
// It must not run more than once at a time.
func (r *Relay) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	aside, stop := context.WithCancel(ctx)
	defer stop()
	wg.Go(func() { Announce(aside, r.store) })
	rings := make(chan struct{}, 1)
	wg.Go(func() { r.listen(aside, rings) })
	wg.Go(func() { r.maintain(aside) })
	for n := 1; ctx.Err() == nil; n++ {
		err := r.runSession(ctx, rings, false)
		if err == nil {
			continue
		}
		r.config.Logger.Error("outbox: the relay starts afresh", "error", err)
		if errors.Is(err, ErrLeaseLost) {
			n = 1
		}
		sleep(ctx, backoff(n, time.Second, 15*time.Second))
	}
	return nil
}

// RunOnce joins, publishes what is due in the shards that are free, settles it, leaves and returns what it did. It waits for no
// retry that is not due. An error means that it stopped before the end; nothing is lost then.
func (r *Relay) RunOnce(ctx context.Context) (Stats, error) {
	before := r.Stats()
	err := r.runSession(ctx, nil, true)
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
			r.counters.listening.Store(true)
			ringOnce(rings) // what was announced while nobody listened
		}
		err := listener.Listen(ctx, ready, func() { ringOnce(rings) })
		r.counters.listening.Store(false)
		if ctx.Err() == nil {
			r.config.Logger.Warn("outbox: not listening, polling carries on", "error", err)
			sleep(ctx, backoff(n+1, 100*time.Millisecond, 30*time.Second))
		}
	}
}

// maintain has the store tidy up, now and about once a minute.
func (r *Relay) maintain(ctx context.Context) {
	for ctx.Err() == nil {
		if err := r.store.Maintain(ctx); err != nil && ctx.Err() == nil {
			r.config.Logger.Warn("outbox: maintenance failed", "error", err)
		}
		sleep(ctx, time.Minute+backoff(1, time.Second, time.Second))
	}
}

// runSession is the relay's life under one id: from joining until ctx ends, its lease is lost, or (once) there is nothing to do.
func (r *Relay) runSession(ctx context.Context, rings <-chan struct{}, once bool) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	s := &session{Relay: r, id: id, ledger: newLedger(r.config)}
	if err := s.join(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	r.current.Store(s)
	defer r.current.Store(nil)
	return s.run(ctx, rings, once)
}
