package scenario

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/report"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// million publishes a backlog of a million events, and compares its last tenth with its first.
func million(ctx context.Context, l *lab.Lab) (report.Result, error) {
	n := lab.Pick(l, 1_000_000, 200_000)
	var first, last, whole measure.Series
	for range lab.Pick(l, 3, 1) {
		tenths, err := drainInTenths(ctx, l, n)
		if err != nil {
			return report.Result{}, err
		}
		first = append(first, measure.Rate(n/10, tenths[0]))
		last = append(last, measure.Rate(n/10, tenths[9]))
		var d time.Duration
		for _, tenth := range tenths {
			d += tenth
		}
		whole = append(whole, measure.Rate(n, d))
	}
	return report.Result{Claims: []report.Claim{{
		What: fmt.Sprintf("drain %s pending events: last tenth against first",
			report.Number(float64(n))),
		Values: last.Over(first), Unit: "×", Bound: report.AtLeast(0.9),
		Detail: fmt.Sprintf("%s against %s, %s over all", perSecond(last), perSecond(first),
			perSecond(whole)),
	}}}, nil
}

// drainInTenths returns how long the relay took for each tenth of the backlog.
func drainInTenths(ctx context.Context, l *lab.Lab, n int) ([10]time.Duration, error) {
	var tenths [10]time.Duration
	db, err := backlog(ctx, l, relay, rival.Uniform(n))
	if err != nil {
		return tenths, err
	}
	defer db.Drop()
	p := &milestones{every: int64(n / 10)}
	if err := drainTo(ctx, db, relay, p, n); err != nil {
		return tenths, err
	}
	before := time.Duration(0)
	for i := range tenths {
		at := time.Duration(p.at[i].Load())
		tenths[i], before = at-before, at
	}
	return tenths, nil
}

// milestones is a publisher that only records the times at which every n-th event has been
// published, beginning with the first.
type milestones struct {
	count atomic.Int64
	every int64
	start sync.Once
	began time.Time
	at    [11]atomic.Int64 // ns since began
}

// Publish implements outbox.Publisher.
func (m *milestones) Publish(context.Context, *outbox.Message) error {
	m.start.Do(func() { m.began = time.Now() })
	if n := m.count.Add(1); n%m.every == 0 {
		m.at[min(n/m.every-1, 10)].Store(int64(time.Since(m.began)))
	}
	return nil
}

// snapshot compares a drain with one during which a transaction holds a snapshot from before the
// first event.
func snapshot(ctx context.Context, l *lab.Lab) (report.Result, error) {
	n := lab.Pick(l, 200_000, 50_000)
	without := func() (float64, error) { return drainOnce(ctx, l, relay, rival.Uniform(n)) }
	rates, err := interleave(lab.Pick(l, 5, 2), without, func() (float64, error) {
		return drainUnderSnapshot(ctx, l, n)
	})
	if err != nil {
		return report.Result{}, err
	}
	return report.Result{Claims: []report.Claim{{
		What: fmt.Sprintf("drain %s while an old snapshot is held open, against without",
			report.Number(float64(n))),
		Values: rates[1].Over(rates[0]), Unit: "×", Bound: report.AtLeast(0.85),
		Detail: fmt.Sprintf("%s against %s", perSecond(rates[1]), perSecond(rates[0])),
	}}}, nil
}

// drainUnderSnapshot measures the second of two equal backlogs, which has the dead rows and index
// entries of the first in front of it.
func drainUnderSnapshot(ctx context.Context, l *lab.Lab, n int) (rate float64, err error) {
	db, err := backlog(ctx, l, relay, rival.Workload{})
	if err != nil {
		return 0, err
	}
	defer db.Drop()
	release, err := holdSnapshot(ctx, db)
	if err != nil {
		return 0, err
	}
	for range 2 {
		if err = fill(ctx, db, relay, rival.Uniform(n)); err != nil {
			break
		}
		if rate, err = drainFrom(ctx, db, relay, n); err != nil {
			break
		}
	}
	return rate, errors.Join(err, release())
}

// holdSnapshot opens a transaction that sees the database as it is now, with an empty outbox, as a
// dump does. Release ends it, and returns an error if the transaction has not seen the same until
// then.
func holdSnapshot(ctx context.Context, db *lab.Database) (release func() error, err error) {
	tx, err := db.BeginTx(ctx,
		pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, err
	}
	see := func() error {
		var pending int
		if err := tx.QueryRow(ctx, "SELECT count(*) FROM outbox").Scan(&pending); err != nil {
			return fmt.Errorf("bench: the old snapshot: %w", err)
		}
		if pending != 0 {
			return fmt.Errorf("bench: the old snapshot sees %d events, it is to see none", pending)
		}
		return nil
	}
	release = func() error { return errors.Join(see(), tx.Rollback(ctx)) }
	if err := see(); err != nil {
		return nil, errors.Join(err, tx.Rollback(ctx))
	}
	return release, nil
}

// hotKey compares a workload in which half of the events have one key with a uniform one.
func hotKey(ctx context.Context, l *lab.Lab) (report.Result, error) {
	uniform := rival.Uniform(lab.Pick(l, 200_000, 50_000))
	hot := uniform
	hot.Hot = 0.5
	rates, err := interleave(lab.Pick(l, 5, 2),
		func() (float64, error) { return drainOnce(ctx, l, relay, hot) },
		func() (float64, error) { return drainOnce(ctx, l, relay, uniform) })
	if err != nil {
		return report.Result{}, err
	}
	return report.Result{Claims: []report.Claim{{
		What: "half of all events on one key, 16 shards, a publisher that takes no time: " +
			"against uniform keys",
		Values: rates[0].Over(rates[1]), Unit: "×", Bound: report.AtLeast(0.6),
		Detail: fmt.Sprintf("%s against %s", perSecond(rates[0]), perSecond(rates[1])),
	}}}, nil
}

// wal measures what the relay adds to the write-ahead log, with and without a checkpoint between
// enqueueing and publishing. After a checkpoint, the first change to each page logs the whole page.
func wal(ctx context.Context, l *lab.Lab) (report.Result, error) {
	n := lab.Pick(l, 200_000, 50_000)
	perEvent := func(checkpoint bool) func() (float64, error) {
		return func() (float64, error) {
			db, err := backlog(ctx, l, relay, rival.Uniform(n))
			if err != nil {
				return 0, err
			}
			defer db.Drop()
			if checkpoint {
				if err := db.Checkpoint(ctx); err != nil {
					return 0, err
				}
			}
			before, err := db.WAL(ctx)
			if err != nil {
				return 0, err
			}
			if _, err := drainFrom(ctx, db, relay, n); err != nil {
				return 0, err
			}
			after, err := db.WAL(ctx)
			return float64(after-before) / float64(n), err
		}
	}
	bytes, err := interleave(lab.Pick(l, 3, 1), perEvent(false), perEvent(true))
	if err != nil {
		return report.Result{}, err
	}
	return report.Result{Claims: []report.Claim{{
		What:   "the relay's WAL per published event, no checkpoint since it was enqueued",
		Values: bytes[0], Unit: "B", Bound: report.AtMost(100),
		Detail: fmt.Sprintf("%.0f B behind a checkpoint: its full pages", bytes[1].Median()),
	}}}, nil
}
