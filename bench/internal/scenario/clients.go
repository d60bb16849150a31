package scenario

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/outboxgen/outboxgen/bench/events"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/report"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"golang.org/x/sync/errgroup"
)

// clients measures what an event in each business transaction costs many clients at once, while
// ForwardWakeups notifies other processes.
func clients(ctx context.Context, l *lab.Lab) (report.Result, error) {
	var result report.Result
	for _, n := range []int{8, 32} {
		claims, err := manyClients(ctx, l, n)
		if err != nil {
			return report.Result{}, fmt.Errorf("%d clients: %w", n, err)
		}
		result.Claims = append(result.Claims, claims...)
	}
	return result, nil
}

func manyClients(ctx context.Context, l *lab.Lab, n int) ([]report.Claim, error) {
	var variants []func() (float64, error)
	for _, s := range services {
		variants = append(variants, func() (float64, error) {
			return s.measure(ctx, l, n, lab.Pick(l, 12_000, 2_000))
		})
	}
	rates, err := interleave(lab.Pick(l, 5, 1), variants...)
	if err != nil {
		return nil, err
	}
	against := func(i int, how, detail string, bound report.Bound) report.Claim {
		return report.Claim{
			What: fmt.Sprintf("%d clients, an event in each business transaction, %s: "+
				"throughput against no event", n, how),
			Values: rates[i].Over(rates[0]), Unit: "×", Bound: bound,
			Detail: fmt.Sprintf("%s transactions/s with, %s without; %s",
				report.Number(rates[i].Median()), report.Number(rates[0].Median()), detail),
		}
	}
	limit := fmt.Sprintf("no relay publishes; a plain INSERT of the row and no doorbell: %.2f ×",
		rates[4].Over(rates[0]).Median())
	own := fmt.Sprintf("the relay's own work, on the same cores, leaves %.2f × of what the "+
		"doorbell alone does", rates[2].Over(rates[1]).Median())
	return []report.Claim{
		against(1, "doorbell on", limit, report.AtLeast(0.8)),
		against(2, "doorbell on and a relay publishing", own, report.Bound{}),
		against(3, "pg_notify in the transaction instead",
			"by a trigger, which costs no round trip", report.Bound{}),
	}, nil
}

// services are the variants that are compared.
var services = []service{
	{name: "no event", enqueue: noEvent, beside: nobody},
	{name: "doorbell", events: 1, enqueue: relay.Enqueue, beside: forwardAndListen},
	{
		name:    "doorbell and relay",
		events:  1,
		enqueue: relay.Enqueue,
		beside:  rival.Elsewhere{}.Follow,
	},
	{name: "pg_notify", events: 1, enqueue: relay.Enqueue, beside: listen, tables: notifyTrigger},
	{name: "plain INSERT", events: 1, enqueue: rival.Bare{}.Enqueue, beside: nobody},
}

// service is a way to enqueue, and what runs beside it.
type service struct {
	name    string
	events  int // in each transaction
	enqueue enqueueing
	beside  companion
	tables  string // created in addition to the shop and the outbox
}

// besideConns is how many connections of the pool the companion may use.
const besideConns = 12

// measure returns how many transactions per second the clients make together: n transactions, in a
// database of their own.
func (s service) measure(
	ctx context.Context, l *lab.Lab, clients, n int,
) (rate float64, err error) {
	db, err := l.Database(ctx, clients+besideConns)
	if err != nil {
		return 0, err
	}
	defer db.Drop()
	if err := s.prepare(ctx, db); err != nil {
		return 0, err
	}
	var published atomic.Int64
	err = alongside(ctx, db, s.beside, func(uuid.UUID) {
		published.Add(1)
	}, func(ctx context.Context) error {
		took, err := s.run(ctx, db, clients, sales(clients+n))
		rate = measure.Rate(n, took)
		slog.Info("enqueued", "service", s.name, "clients", clients, "per second", int(rate),
			"published", published.Load())
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.name, err)
	}
	return rate, errors.Join(
		expectRows(ctx, db, "orders", clients+n),
		expectRows(ctx, db, "outbox", s.events*(clients+n)-int(published.Load())))
}

func (s service) prepare(ctx context.Context, db *lab.Database) error {
	if err := openShop(ctx, db); err != nil {
		return err
	}
	if err := relay.Prepare(ctx, db); err != nil {
		return err
	}
	if _, err := db.Exec(ctx, s.tables); err != nil {
		return fmt.Errorf("bench: prepare %s: %w", s.name, err)
	}
	return db.Analyse(ctx)
}

// run has the clients share the orders, each one order before the clock starts, and returns how
// long the rest took.
func (s service) run(
	ctx context.Context, db *lab.Database, clients int, orders []rival.Order,
) (time.Duration, error) {
	conns := make([]*pgxpool.Conn, clients)
	for i := range conns {
		conn, err := db.Acquire(ctx)
		if err != nil {
			return 0, err
		}
		defer conn.Release()
		conns[i] = conn
		if err := sell(ctx, conn, orders[i], s.enqueue); err != nil {
			return 0, err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	var taken atomic.Int64
	taken.Store(int64(clients))
	began := time.Now()
	for _, conn := range conns {
		group.Go(func() error {
			for i := taken.Add(1) - 1; i < int64(len(orders)); i = taken.Add(1) - 1 {
				if err := sell(ctx, conn, orders[i], s.enqueue); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	return time.Since(began), err
}

// companion runs beside the clients until ctx ends. It calls ready once it is at work, and
// published with the OrderID of each event that it publishes.
type companion func(ctx context.Context, db *lab.Database, ready func(),
	published func(uuid.UUID)) error

// alongside runs f while a companion runs. An error of either ends both.
func alongside(
	ctx context.Context, db *lab.Database, beside companion, published func(uuid.UUID),
	f func(context.Context) error,
) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		defer stop()
		ended <- beside(ctx, db, func() { close(ready) }, published)
	}()
	select {
	case <-ready:
	case err := <-ended:
		return errors.Join(errors.New("bench: what was to run beside never began"), err)
	}
	failed := f(ctx)
	stop()
	err := <-ended
	if errors.Is(err, context.Canceled) {
		err = nil // it was told to end
	}
	return errors.Join(err, failed)
}

func nobody(ctx context.Context, _ *lab.Database, ready func(), _ func(uuid.UUID)) error {
	ready()
	<-ctx.Done()
	return nil
}

// listen holds a connection that receives notifications, as each relay does.
func listen(ctx context.Context, db *lab.Database, ready func(), _ func(uuid.UUID)) error {
	_, err := events.NewStore(db.Pool).Listen(ctx,
		storage.ListenParams{Ready: ready, Ring: func() {}})
	return err
}

// forwardAndListen forwards the service's wake-ups to another process, which does nothing with
// them.
func forwardAndListen(
	ctx context.Context, db *lab.Database, ready func(), published func(uuid.UUID),
) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return listen(ctx, db, ready, published) })
	group.Go(func() error {
		outbox.ForwardWakeups(ctx, rival.Store(db))
		return nil
	})
	return group.Wait()
}

// notifyTrigger makes every transaction that enqueues send a notification by itself.
const notifyTrigger = `
	CREATE FUNCTION ring() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN PERFORM pg_notify('outbox', ''); RETURN NULL; END $$;
	CREATE TRIGGER ring AFTER INSERT ON outbox FOR EACH STATEMENT EXECUTE FUNCTION ring()`
