package scenario

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/report"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// interleave measures each variant once a round, so that what changes on the machine meanwhile changes for all of them.
func interleave(rounds int, variants ...func() (float64, error)) ([]measure.Series, error) {
	all := make([]measure.Series, len(variants))
	for range rounds {
		for i, variant := range variants {
			value, err := variant()
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], value)
		}
	}
	return all, nil
}

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
		What:   fmt.Sprintf("drain %s pending events: last tenth against first", report.Number(float64(n))),
		Values: last.Over(first), Unit: "×", Bound: report.AtLeast(0.9),
		Detail: fmt.Sprintf("%s against %s, %s over all", perSecond(last), perSecond(first), perSecond(whole)),
	}}}, nil
}

// drainInTenths returns how long each tenth of the backlog took to be published.
func drainInTenths(ctx context.Context, l *lab.Lab, n int) ([10]time.Duration, error) {
	var tenths [10]time.Duration
	db, err := backlog(ctx, l, relay, rival.Uniform(n))
	if err != nil {
		return tenths, err
	}
	defer db.Drop()
	p := &milestones{every: int64(n / 10), began: time.Now()}
	r, err := relay.New(db, p)
	if err != nil {
		return tenths, err
	}
	stats, err := r.RunOnce(ctx)
	if err != nil {
		return tenths, err
	}
	if stats.Published != int64(n) {
		return tenths, fmt.Errorf("%d of %d events were published", stats.Published, n)
	}
	before := time.Duration(0)
	for i := range tenths {
		at := time.Duration(p.at[i].Load())
		tenths[i], before = at-before, at
	}
	return tenths, nil
}

// milestones is a publisher that does nothing but note when every so many events have been published.
type milestones struct {
	count atomic.Int64
	every int64
	began time.Time
	at    [11]atomic.Int64 // ns since began
}

// Publish implements outbox.Publisher.
func (m *milestones) Publish(context.Context, *outbox.Message) error {
	if n := m.count.Add(1); n%m.every == 0 {
		m.at[min(n/m.every-1, 10)].Store(int64(time.Since(m.began)))
	}
	return nil
}

// snapshot compares a drain with one while a transaction holds a snapshot from before the first event.
func snapshot(ctx context.Context, l *lab.Lab) (report.Result, error) {
	n := lab.Pick(l, 200_000, 50_000)
	without := func() (float64, error) { return drainOnce(ctx, l, relay, rival.Uniform(n)) }
	rates, err := interleave(lab.Pick(l, 5, 2), without, func() (float64, error) { return drainUnderSnapshot(ctx, l, n) })
	if err != nil {
		return report.Result{}, err
	}
	return report.Result{Claims: []report.Claim{{
		What:   fmt.Sprintf("drain %s while an old snapshot is held open, against without", report.Number(float64(n))),
		Values: rates[1].Over(rates[0]), Unit: "×", Bound: report.AtLeast(0.85),
		Detail: fmt.Sprintf("%s against %s", perSecond(rates[1]), perSecond(rates[0])),
	}}}, nil
}

// drainUnderSnapshot measures the second of two equal backlogs: the dead rows and index entries of the first stand before it.
func drainUnderSnapshot(ctx context.Context, l *lab.Lab, n int) (float64, error) {
	db, err := l.Database(ctx, drainConns)
	if err != nil {
		return 0, err
	}
	defer db.Drop()
	if err := relay.Prepare(ctx, db); err != nil {
		return 0, err
	}
	release, err := holdSnapshot(ctx, db)
	if err != nil {
		return 0, err
	}
	defer release()
	if err := fill(ctx, db, relay, rival.Uniform(n)); err != nil {
		return 0, err
	}
	if _, err := drainFrom(ctx, db, relay, n); err != nil {
		return 0, err
	}
	if err := fill(ctx, db, relay, rival.Uniform(n)); err != nil {
		return 0, err
	}
	return drainFrom(ctx, db, relay, n)
}

// holdSnapshot opens a transaction that goes on seeing what is there now, as a dump does, until release.
func holdSnapshot(ctx context.Context, db *lab.Database) (release func(), err error) {
	tx, err := db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, err
	}
	release = func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }
	if _, err := tx.Exec(ctx, "SELECT count(*) FROM outbox"); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// retention compares a drain in which published events are kept beside those of the last days, with the same where none have
// been kept yet.
func retention(ctx context.Context, l *lab.Lab) (report.Result, error) {
	n, kept := lab.Pick(l, 200_000, 50_000), lab.Pick(l, 5_000_000, 200_000)
	keeping := rival.Relay{Retain: true}
	var dbs [3]*lab.Database
	for i := range dbs {
		db, err := l.Database(ctx, drainConns)
		if err != nil {
			return report.Result{}, err
		}
		defer db.Drop()
		if err := relay.Prepare(ctx, db); err != nil {
			return report.Result{}, err
		}
		if err := keeping.Store(db).Maintain(ctx); err != nil { // makes the partitions
			return report.Result{}, err
		}
		dbs[i] = db
	}
	if err := keep(ctx, dbs[0], kept); err != nil {
		return report.Result{}, err
	}
	round := func(db *lab.Database, r rival.Relay, forget bool) func() (float64, error) {
		return func() (float64, error) {
			if err := fill(ctx, db, relay, rival.Uniform(n)); err != nil {
				return 0, err
			}
			rate, err := drainFrom(ctx, db, r, n)
			if err == nil && forget {
				_, err = db.Exec(ctx, "TRUNCATE outbox_sent")
			}
			return rate, err
		}
	}
	rates, err := interleave(lab.Pick(l, 5, 2), round(dbs[0], keeping, false), round(dbs[1], keeping, true), round(dbs[2], relay, false))
	if err != nil {
		return report.Result{}, err
	}
	what := fmt.Sprintf("drain %s with %s published events retained", report.Number(float64(n)), report.Number(float64(kept)))
	return report.Result{Claims: []report.Claim{
		{
			What: what + ", against none retained yet", Values: rates[0].Over(rates[1]), Unit: "×", Bound: report.AtLeast(0.9),
			Detail: fmt.Sprintf("%s against %s", perSecond(rates[0]), perSecond(rates[1])),
		},
		{
			What: what + ", against retention switched off", Values: rates[0].Over(rates[2]), Unit: "×",
			Detail: fmt.Sprintf("%s against %s", perSecond(rates[0]), perSecond(rates[2])),
		},
	}}, nil
}

// keep adds published events of the last hours.
func keep(ctx context.Context, db *lab.Database, n int) error {
	order := rival.JSON(rival.Uniform(1).Orders()[0])
	_, err := db.Exec(ctx, `
		INSERT INTO outbox_sent (shard, seq, id, type, version, topic, key, payload, content_type, attempts, created_at, sent_at)
		SELECT n % 16, -n, gen_random_uuid(), 'order.placed', 1, 'shop.orders', gen_random_uuid()::text, $2, 'application/json', 0, now(), now()
		FROM generate_series(1, $1::integer) AS n`, n, order)
	if err != nil {
		return fmt.Errorf("bench: keep published events: %w", err)
	}
	return db.Settle(ctx)
}

// hotKey compares a workload in which half of the events belong to one key with a uniform one.
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
		What:   "half of all events on one key, 16 shards, against uniform keys",
		Values: rates[0].Over(rates[1]), Unit: "×", Bound: report.AtLeast(0.6),
		Detail: fmt.Sprintf("%s against %s", perSecond(rates[0]), perSecond(rates[1])),
	}}}, nil
}

// wal measures what the relay adds to the write-ahead log, without and with a checkpoint between enqueueing and publishing: behind one,
// the first change to a page logs it whole.
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
		What:   "the relay's WAL per published event",
		Values: bytes[0], Unit: "B", Bound: report.AtMost(100),
		Detail: fmt.Sprintf("%.0f B where a checkpoint lies between enqueueing and publishing: its full pages", bytes[1].Median()),
	}}}, nil
}
