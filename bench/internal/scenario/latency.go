package scenario

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/report"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
	"golang.org/x/sync/errgroup"
)

const (
	arrivalRate  = 100 // business transactions per second
	latencyConns = 24  // of the pool, for the contestant and the service together
)

// latency measures how soon an event is published after its commit, at a rate that is easy for
// every contestant.
func latency(ctx context.Context, l *lab.Lab) (report.Result, error) {
	var here, elsewhere, jobs, forwarded delays
	contestants := []struct {
		rival.Follower
		delays *delays
	}{
		{relay, &here}, {rival.Elsewhere{}, &elsewhere}, {rival.PromptRiver{}, &jobs},
		{forwarder, &forwarded},
	}
	for range lab.Pick(l, 3, 1) {
		for _, i := range rand.Perm(len(contestants)) {
			c := contestants[i]
			trips, err := follow(ctx, l, c.Follower, lab.Pick(l, 10, 4)*arrivalRate)
			if err != nil {
				return report.Result{}, fmt.Errorf("%s: %w", c.Name(), err)
			}
			c.delays.add(trips)
			slog.Info("followed", "contestant", c.Name(), "events", len(trips), "delays",
				c.delays.String())
		}
	}
	what := fmt.Sprintf("COMMIT returned to publish at %d events/s, relay in the service's process",
		arrivalRate)
	afar := fmt.Sprintf("COMMIT returned to publish at %d events/s, relay told by NOTIFY as in "+
		"another process", arrivalRate)
	peer := rival.PromptRiver{}.Name()
	return report.Result{Claims: []report.Claim{
		{
			What:   what + ", p50",
			Values: here.p50,
			Unit:   "ms",
			Bound:  report.AtMost(4),
			Detail: here.String(),
		},
		{
			What:   what + ", p99",
			Values: here.p99,
			Unit:   "ms",
			Bound:  report.AtMost(20),
			Detail: here.String(),
		},
		{
			What:   afar + ", p50",
			Values: elsewhere.p50,
			Unit:   "ms",
			Bound:  report.AtMost(4),
			Detail: elsewhere.String(),
		},
		{
			What:   afar + ", p99",
			Values: elsewhere.p99,
			Unit:   "ms",
			Bound:  report.AtMost(20),
			Detail: elsewhere.String(),
		},
		here.against(jobs, what+", p50 against "+peer, report.AtMost(0.5)),
		here.againstFromSent(jobs, "the same, but from when COMMIT was sent"),
		elsewhere.against(jobs, afar+", p50 against "+peer, report.Bound{}),
		here.against(forwarded, what+", p50 against "+forwarder.Name(), report.Bound{}),
	}}, nil
}

// delays are the times that events took, in milliseconds, in each round. An event that was
// published before its COMMIT had returned took no time.
type delays struct {
	p50, p99 measure.Series // from the return of COMMIT
	sent     measure.Series // p50 from the sending of COMMIT
	early    int            // events that took no time
}

func (d *delays) add(trips []trip) {
	var committed, sent []time.Duration
	for _, t := range trips {
		if t.published.Before(t.committed) {
			d.early++
		}
		committed = append(committed, max(0, t.published.Sub(t.committed)))
		sent = append(sent, max(0, t.published.Sub(t.sent)))
	}
	d.p50 = append(d.p50, measure.Milliseconds(measure.Percentile(committed, 0.5)))
	d.p99 = append(d.p99, measure.Milliseconds(measure.Percentile(committed, 0.99)))
	d.sent = append(d.sent, measure.Milliseconds(measure.Percentile(sent, 0.5)))
}

// String formats the delays for people.
func (d *delays) String() string {
	return fmt.Sprintf("p50 %s, p99 %s, %d events before COMMIT had returned; from when it was "+
		"sent p50 %s",
		millis(d.p50), millis(d.p99), d.early, millis(d.sent))
}

func (d *delays) against(peer delays, what string, bound report.Bound) report.Claim {
	return report.Claim{
		What: what, Values: d.p50.Over(peer.p50), Unit: "×", Bound: bound,
		Detail: fmt.Sprintf("%s against %s; p99 %s against %s", millis(d.p50), millis(peer.p50),
			millis(d.p99), millis(peer.p99)),
	}
}

// againstFromSent compares the times from the sending of COMMIT, so that both include the commit.
func (d *delays) againstFromSent(peer delays, what string) report.Claim {
	return report.Claim{
		What: what, Values: d.sent.Over(peer.sent), Unit: "×", Detail: fmt.Sprintf("%s against %s",
			millis(d.sent), millis(peer.sent)),
	}
}

// follow has a contestant publish the events of n business transactions while they are made, in a
// database of its own, and returns the times of each event. A second's worth of transactions
// precedes them.
func follow(ctx context.Context, l *lab.Lab, c rival.Follower, n int) ([]trip, error) {
	db, err := l.Database(ctx, latencyConns)
	if err != nil {
		return nil, err
	}
	defer db.Drop()
	for _, prepare := range []func(context.Context, *lab.Database) error{openShop, c.Prepare} {
		if err := prepare(ctx, db); err != nil {
			return nil, err
		}
	}
	if err := db.Analyse(ctx); err != nil {
		return nil, err
	}
	j := newJournal(sales(arrivalRate + n))
	err = alongside(ctx, db, c.Follow, j.publish, func(ctx context.Context) error {
		if err := j.sell(ctx, db, c); err != nil {
			return err
		}
		return j.await(ctx)
	})
	if err != nil {
		return nil, err
	}
	if j.surplus > 0 {
		return nil, fmt.Errorf("bench: %d events were published twice", j.surplus)
	}
	return j.trips[arrivalRate:], nil
}

// trip has the times of one event.
type trip struct{ sent, committed, published time.Time }

// journal records the times of each order's event.
type journal struct {
	orders []rival.Order
	trips  []trip // of the orders
	places map[uuid.UUID]int

	mu      sync.Mutex // protects the times of publishing and the fields below
	pending int
	surplus int
	all     chan struct{} // closed once none is pending
}

func newJournal(orders []rival.Order) *journal {
	j := &journal{
		orders: orders, trips: make([]trip, len(orders)), places: make(map[uuid.UUID]int,
			len(orders)),
		pending: len(orders), all: make(chan struct{}),
	}
	for i, o := range orders {
		j.places[o.OrderID] = i
	}
	return j
}

// sell begins the business transactions at random times, as a Poisson process, without waiting for
// earlier ones. The times are the same for all contestants.
func (j *journal) sell(ctx context.Context, db *lab.Database, c rival.Follower) error {
	r := rand.New(rand.NewPCG(3, uint64(len(j.orders))))
	var group errgroup.Group
	due := time.Now()
	for i := range j.orders {
		due = due.Add(time.Duration(r.ExpFloat64() * float64(time.Second) / arrivalRate))
		if !wait(ctx, time.Until(due)) {
			break
		}
		group.Go(func() error { return j.sellOne(ctx, db, c, i) })
	}
	return group.Wait()
}

func (j *journal) sellOne(ctx context.Context, db *lab.Database, c rival.Follower, i int) error {
	t := &j.trips[i]
	err := sell(ctx, db, j.orders[i], func(ctx context.Context, tx pgx.Tx, o rival.Order) error {
		err := c.Enqueue(ctx, tx, o)
		t.sent = time.Now()
		return err
	})
	t.committed = time.Now()
	return err
}

// publish records that the event of an order has been published.
func (j *journal) publish(id uuid.UUID) {
	now := time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	i, known := j.places[id]
	if !known || !j.trips[i].published.IsZero() {
		j.surplus++
		return
	}
	j.trips[i].published = now
	if j.pending--; j.pending == 0 {
		close(j.all)
	}
}

// await waits until every event has been published.
func (j *journal) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	select {
	case <-j.all:
		return nil
	case <-ctx.Done():
		j.mu.Lock()
		defer j.mu.Unlock()
		return fmt.Errorf("bench: %d of %d events are not published: %w", j.pending, len(j.orders),
			ctx.Err())
	}
}
