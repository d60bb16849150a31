package scenario

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/report"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
)

// pressure measures whether the relay keeps up with 3,000 events/s while a snapshot is held, so
// that no dead row can be removed.
func pressure(ctx context.Context, l *lab.Lab) (report.Result, error) {
	c := load{perSecond: 3000, perTx: 10, clients: 4, lasts: lab.Pick(l, 2*time.Minute,
		10*time.Second), window: lab.Pick(l, 10*time.Second, 2*time.Second)}
	db, err := l.Database(ctx, drainConns+c.clients)
	if err != nil {
		return report.Result{}, err
	}
	defer db.Drop()
	if err := relay.Prepare(ctx, db); err != nil {
		return report.Result{}, err
	}
	release, err := holdSnapshot(ctx, db)
	if err != nil {
		return report.Result{}, err
	}
	windows, perSecond, err := c.run(ctx, db, func(int) error { return nil })
	if err := errors.Join(err, release()); err != nil {
		return report.Result{}, err
	}
	if perSecond < 0.98*float64(c.perSecond) {
		return report.Result{}, fmt.Errorf("bench: %.0f events/s were enqueued, %d were to be",
			perSecond, c.perSecond)
	}
	// In the very first window, the relay connects and plans.
	first, last := &windows[1], &windows[len(windows)-1]
	return report.Result{Claims: []report.Claim{{
		What: fmt.Sprintf("3,000 events/s for %s under an old snapshot: the relay's cycle at "+
			"the end against the beginning", spell(c.lasts)),
		Values: measure.Series{float64(last.cycle()) / float64(first.cycle())},
		Unit:   "×", Bound: report.AtMost(1.5),
		Detail: fmt.Sprintf("%.2f ms against %.2f ms; COMMIT sent to publish p50 %.1f ms against "+
			"%.1f ms, p99 %.1f ms against %.1f ms",
			measure.Milliseconds(last.cycle()), measure.Milliseconds(first.cycle()),
			last.wait(0.5), first.wait(0.5), last.wait(0.99), first.wait(0.99)),
	}}}, nil
}

// spell formats whole minutes or seconds for people.
func spell(d time.Duration) string {
	if d%time.Minute == 0 {
		return fmt.Sprintf("%d minutes", d/time.Minute)
	}
	return fmt.Sprintf("%d seconds", d/time.Second)
}

// size is the size of the outbox.
type size struct{ table, indexes, dead float64 } // MiB, MiB, rows

func sizeOf(ctx context.Context, db *lab.Database) (s size, err error) {
	err = db.QueryRow(ctx, `
		SELECT pg_table_size('outbox') / 1048576.0, pg_indexes_size('outbox') / 1048576.0,
		       (SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'outbox')`,
	).Scan(&s.table, &s.indexes, &s.dead)
	return s, err
}

// steady enqueues at half of the drain rate, or as fast as the machine can beside the relay. Once
// vacuum runs regularly, nothing may grow. At such a rate the size of the tables depends on the
// interval at which the server looks for something to vacuum, one minute by default, so that it is
// shorter here, as docs/performance.md advises.
func steady(ctx context.Context, l *lab.Lab) (report.Result, error) {
	half, err := halfOfDrainRate(ctx, l)
	if err != nil {
		return report.Result{}, err
	}
	reset, err := l.Set(ctx, "autovacuum_naptime", "10s")
	if err != nil {
		return report.Result{}, err
	}
	defer reset()
	c := load{perSecond: half, perTx: 500, clients: 2, lasts: lab.Pick(l, 10*time.Minute,
		10*time.Second), window: lab.Pick(l, 30*time.Second, 2*time.Second)}
	db, err := l.Database(ctx, drainConns+c.clients)
	if err != nil {
		return report.Result{}, err
	}
	defer db.Drop()
	if err := relay.Prepare(ctx, db); err != nil {
		return report.Result{}, err
	}
	var sizes []size
	windows, perSecond, err := c.run(ctx, db, func(i int) error {
		s, err := sizeOf(ctx, db)
		slog.Info("steady", "window", i, "table MiB", int(s.table), "indexes MiB", int(s.indexes),
			"dead", int(s.dead))
		sizes = append(sizes, s)
		return err
	})
	if err != nil {
		return report.Result{}, err
	}
	// In a quick run, vacuum has not run yet.
	return report.Result{Claims: c.grown(windows, sizes, perSecond,
		lab.Pick(l, report.AtMost(1.25), report.Bound{}))}, nil
}

// grown compares the last window with the one after a fifth of the time, since vacuum takes a
// minute or two until it runs regularly.
func (c load) grown(
	windows []window, sizes []size, perSecond float64, most report.Bound,
) []report.Claim {
	start, end := len(windows)/5, len(windows)-1
	what := fmt.Sprintf("%s at %s events/s (%s were asked for), end against beginning: ",
		spell(c.lasts), report.Number(perSecond), report.Number(float64(c.perSecond)))
	compare := func(name, unit string, from, to float64, bound report.Bound) report.Claim {
		return report.Claim{
			What: what + name, Values: measure.Series{to / max(from, 1)}, Unit: "×", Bound: bound,
			Detail: fmt.Sprintf("%s %s against %s %s", report.Number(to), unit, report.Number(from),
				unit),
		}
	}
	a, z := &windows[start], &windows[end]
	return []report.Claim{
		compare("table", "MiB", sizes[start].table, sizes[end].table, most),
		compare("indexes", "MiB", sizes[start].indexes, sizes[end].indexes, most),
		compare("dead rows", "rows", sizes[start].dead, sizes[end].dead, report.Bound{}),
		{
			What:   what + "COMMIT sent to publish, p50",
			Values: measure.Series{z.wait(0.5) / a.wait(0.5)}, Unit: "×", Bound: most,
			Detail: fmt.Sprintf("%.1f ms against %.1f ms; p99 %.1f ms against %.1f ms", z.wait(0.5),
				a.wait(0.5), z.wait(0.99), a.wait(0.99)),
		},
	}
}

// halfOfDrainRate returns half of the relay's drain rate on this machine, rounded to thousands.
func halfOfDrainRate(ctx context.Context, l *lab.Lab) (int, error) {
	rates, err := interleave(lab.Pick(l, 3, 1), func() (float64, error) {
		return drainOnce(ctx, l, relay, rival.Uniform(lab.Pick(l, 200_000, 50_000)))
	})
	if err != nil {
		return 0, err
	}
	return int(rates[0].Median()/2/1000) * 1000, nil
}
