package outbox

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/outboxgen/outboxgen/runtime/backoff"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// Relay publishes the events of an outbox. Several relays, in one process or many, share its shards
// evenly.
//
// A relay publishes a committed event until the broker acknowledges it, or until it becomes a dead
// letter. Events of one key are published in order, and one waits while its predecessor is retried.
// A crash at any point loses nothing and may publish again with the same event id.
type Relay struct {
	store     storage.Store
	publisher Publisher
	config    Config
	counters  counters
	health    *health
	upkeep    *upkeep
	current   atomic.Pointer[session]
}

// NewRelay returns a relay that does nothing until Run or RunOnce. It returns an error if the
// configuration is invalid.
func NewRelay(store storage.Store, publisher Publisher, config Config) (*Relay, error) {
	if store == nil || publisher == nil {
		return nil, errors.New("outbox: a relay needs a store and a publisher")
	}
	config = config.withDefaults(publisher)
	if err := config.validate(); err != nil {
		return nil, err
	}
	r := &Relay{
		store: store, publisher: publisher, config: config, health: newHealth(config.Logger),
	}
	r.upkeep = &upkeep{store: store, health: r.health, counters: &r.counters}
	return r, nil
}

// Run publishes until ctx ends. Then it finishes the publishes that are under way, settles them and
// gives its shards back, within the DrainTimeout and what the Lease leaves; it returns what went
// wrong with that, or nil. It survives outages of the database and the broker, and logs them.
// Before that it returns only an error that wraps ErrUnusable, which no retry mends; with
// WaitForSchema it waits for a migration that is missing. It must not run more than once at a time.
func (r *Relay) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	upkeepCtx, stop := context.WithCancel(ctx)
	defer stop()
	wakeups := make(chan struct{}, 1)
	wg.Go(func() { ForwardWakeups(upkeepCtx, r.store) })
	wg.Go(func() { r.upkeep.listen(upkeepCtx, wakeups) })
	startUpkeep := sync.OnceFunc(func() { // these tasks need the tables
		wg.Go(func() { r.upkeep.maintain(upkeepCtx) })
		wg.Go(func() { r.upkeep.countBacklog(upkeepCtx) })
	})
	for n := 1; ; n++ {
		s, err := r.join(ctx)
		if err == nil {
			startUpkeep()
			err = r.runSession(ctx, s, wakeups, false)
		}
		switch {
		case ctx.Err() != nil && s == nil:
			return nil // nothing was in progress
		case ctx.Err() != nil || r.isFinal(err):
			return err
		case s != nil:
			r.config.Logger.Error("outbox: the relay restarts with nothing in memory", "error", err)
			n = 1
		}
		sleep(ctx, backoff.Delay(n, time.Second, 15*time.Second))
	}
}

// RunOnce joins, publishes the events that are due in the shards that no other relay owns, leaves,
// and returns the counts. It does not wait for retries that are not due. An error means that it
// stopped early; nothing is lost then.
func (r *Relay) RunOnce(ctx context.Context) (Stats, error) {
	before := r.Stats()
	s, err := r.join(ctx)
	if err == nil {
		err = r.runSession(ctx, s, nil, true)
	}
	done := r.Stats()
	done.Published -= before.Published
	done.Retried -= before.Retried
	done.Dead -= before.Dead
	done.LostSettles -= before.LostSettles
	done.LeasesLost -= before.LeasesLost
	return done, errors.Join(err, ctx.Err())
}

// join returns a session that has joined the relays.
func (r *Relay) join(ctx context.Context) (*session, error) {
	s, err := newSession(r.store, r.publisher, r.config, r.health, &r.counters)
	if err != nil {
		return nil, err
	}
	err = s.members.join(ctx)
	if !r.isFinal(err) {
		r.health.report(ctx, joining, err)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// isFinal reports whether joining again cannot help.
func (r *Relay) isFinal(err error) bool {
	return errors.Is(err, ErrUnusable) &&
		!(r.config.WaitForSchema && errors.Is(err, ErrMigrationMissing))
}

// runSession runs s until ctx ends, its lease is lost or, if once is true, nothing is left to do.
func (r *Relay) runSession(
	ctx context.Context, s *session, wakeups <-chan struct{}, once bool,
) error {
	r.current.Store(s)
	defer r.current.Store(nil)
	return s.run(ctx, wakeups, once)
}

// Stats returns the relay's counters.
func (r *Relay) Stats() Stats {
	s := Stats{
		Published:   r.counters.published.Load(),
		Retried:     r.counters.retried.Load(),
		Dead:        r.counters.dead.Load(),
		LostSettles: r.counters.lostSettles.Load(),
		LeasesLost:  r.counters.leasesLost.Load(),
		Listening:   r.counters.listening.Load(),
	}
	if b := r.upkeep.backlog.Load(); b != nil {
		s.Backlog = *b
	}
	if current := r.current.Load(); current != nil {
		f := current.ledger.Figures()
		s.Shards, s.InFlight, s.Held, s.Open = f.Shards, f.InFlight, f.Held, f.Open
	}
	return s
}
