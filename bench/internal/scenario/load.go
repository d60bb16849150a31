package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"golang.org/x/sync/errgroup"
)

// load enqueues at a fixed rate, or as close to it as this machine allows, while a relay publishes.
// It observes both.
type load struct {
	perSecond     int // events
	perTx         int // events in one transaction
	clients       int
	lasts, window time.Duration // the observations are grouped by windows
}

// window is what was observed in one window of time.
type window struct {
	mu sync.Mutex
	// waits are the times from before the commit to the publish, of the last event of each
	// transaction.
	waits   []time.Duration
	reads   []time.Duration // the relay's
	settles []time.Duration
}

func (w *window) add(to *[]time.Duration, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*to = append(*to, d)
}

// cycle returns the mean time of the statements of one cycle of the relay: a read and a settle.
func (w *window) cycle() time.Duration { return mean(w.reads) + mean(w.settles) }

func (w *window) wait(p float64) float64 {
	return measure.Milliseconds(measure.Percentile(w.waits, p))
}

func mean(values []time.Duration) time.Duration {
	var sum time.Duration
	for _, v := range values {
		sum += v
	}
	return sum / time.Duration(max(1, len(values)))
}

// observed is a relay's store and publisher, whose calls are timed.
type observed struct {
	rival.ServiceStore
	began     time.Time
	each      time.Duration
	windows   []window
	committed sync.Map // key → when its transaction began to commit
	enqueued  atomic.Int64
	published atomic.Int64
}

func (o *observed) now() *window {
	return &o.windows[min(int(time.Since(o.began)/o.each), len(o.windows)-1)]
}

// Read implements storage.Store.
func (o *observed) Read(ctx context.Context, p storage.ReadParams) (storage.ReadResult, error) {
	began, w := time.Now(), o.now()
	r, err := o.Store.Read(ctx, p)
	if len(r.Items) > 0 { // empty reads are those of a relay that waits
		w.add(&w.reads, time.Since(began))
	}
	return r, err
}

// Settle implements storage.Store.
func (o *observed) Settle(
	ctx context.Context, p storage.SettleParams,
) (storage.SettleResult, error) {
	began, w := time.Now(), o.now()
	r, err := o.Store.Settle(ctx, p)
	w.add(&w.settles, time.Since(began))
	return r, err
}

// Publish implements outbox.Publisher.
func (o *observed) Publish(_ context.Context, m *outbox.Message) error {
	o.published.Add(1)
	if committed, found := o.committed.LoadAndDelete(m.Key); found {
		w := o.now()
		w.add(&w.waits, time.Since(committed.(time.Time)))
	}
	return nil
}

// run enqueues and publishes, and calls every at the end of each window. Once everything is
// published, it returns the windows and how many events were enqueued per second.
func (c load) run(
	ctx context.Context, db *lab.Database, every func(window int) error,
) (_ []window, perSecond float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.lasts+2*time.Minute)
	defer cancel()
	o := &observed{
		ServiceStore: rival.Store(db),
		began:        time.Now(),
		each:         c.window,
		windows:      make([]window, c.lasts/c.window),
	}
	r, err := outbox.NewRelay(o, o, rival.Silent(outbox.Config{}))
	if err != nil {
		return nil, 0, err
	}
	relaying, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- r.Run(relaying) }()
	group, enqueueing := errgroup.WithContext(ctx)
	for client := range c.clients {
		group.Go(func() error { return c.enqueue(enqueueing, db, o, client) })
	}
	group.Go(func() error { return c.tick(enqueueing, o, every) })
	if err := group.Wait(); err != nil {
		return nil, 0, err
	}
	n := int(o.enqueued.Load())
	perSecond = measure.Rate(n, time.Since(o.began))
	if err := awaitPublished(ctx, o, n); err != nil {
		return nil, 0, err
	}
	stop()
	if err := <-ended; err != nil {
		return nil, 0, err
	}
	if got := o.published.Load(); got != int64(n) {
		return nil, 0, fmt.Errorf("bench: %d events were published, %d were enqueued", got, n)
	}
	return o.windows, perSecond, expectEmpty(ctx, db)
}

// enqueue is one client. Its transactions are due at fixed times, and one that is late is made at
// once.
func (c load) enqueue(ctx context.Context, db *lab.Database, o *observed, client int) error {
	r := rand.New(rand.NewPCG(2, uint64(client)))
	total := c.perSecond * int(c.lasts/time.Second) / c.perTx
	for i := client; i < total && time.Since(o.began) < c.lasts; i += c.clients {
		due := o.began.Add(time.Duration(i) * c.lasts / time.Duration(total))
		if !wait(ctx, time.Until(due)) {
			return ctx.Err()
		}
		orders := make([]rival.Order, c.perTx)
		for j := range orders {
			orders[j] = rival.NewOrder(r, uuid.New())
		}
		if err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
			err := rival.EnqueueAll(ctx, tx, orders)
			o.committed.Store(orders[len(orders)-1].EventKey(), time.Now())
			return err
		}); err != nil {
			return err
		}
		o.enqueued.Add(int64(c.perTx))
	}
	return nil
}

func (c load) tick(ctx context.Context, o *observed, every func(int) error) error {
	for i := range o.windows {
		if !wait(ctx, time.Until(o.began.Add(time.Duration(i+1)*c.window))) {
			return ctx.Err()
		}
		if err := every(i); err != nil {
			return err
		}
	}
	return nil
}

// awaitPublished polls until everything is published.
func awaitPublished(ctx context.Context, o *observed, n int) error {
	for o.published.Load() < int64(n) {
		if !wait(ctx, 5*time.Millisecond) {
			return fmt.Errorf("bench: of %d events %d were published in time", n,
				o.published.Load())
		}
	}
	return nil
}
