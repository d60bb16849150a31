package scenario

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"time"

	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/report"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
)

const (
	drainConns = 12 // of the pool, for every contestant
	drainLimit = 5 * time.Minute
)

var (
	relay         = rival.Relay{}
	river         = rival.River{}
	defaultSchema = rival.Watermill{Batch: 1000}
	smallBatch    = rival.Watermill{Batch: 100}
	queueSchema   = rival.Watermill{Batch: 1000, Queue: true}
	forwarder     = rival.Forwarder{Batch: 1000}
	claimed       = rival.Claim{Workers: 1, Batch: 500}

	// lines are the contestants of the plot; controls show what causes a difference.
	lines = []rival.Contestant{
		relay, queueSchema, forwarder, defaultSchema, claimed, river, smallBatch,
	}
	controls = []rival.Contestant{
		rival.Relaxed{Contestant: queueSchema}, rival.Relaxed{Contestant: claimed},
		rival.Claim{Workers: 2, Batch: 1000, Delete: true}, rival.River{NoIndex: true},
	}
)

// drain has all contestants publish the same backlogs.
func drain(ctx context.Context, l *lab.Lab) (report.Result, error) {
	runs := []drainRun{
		{1000, 3, lines}, {10_000, 3, lines}, {50_000, 5, slices.Concat(lines, controls)}, {
			200_000, 3, lines[:4],
		}, {1_000_000, 3, lines[:2]},
	}
	if l.Quick {
		runs = []drainRun{{10_000, 1, lines}, {50_000, 1, lines}}
	}
	rates := drainRates{}
	for _, run := range runs {
		if err := run.measure(ctx, l, rates); err != nil {
			return report.Result{}, err
		}
	}
	claims := []report.Claim{
		rates.against(50_000, river, report.AtLeast(10)),
		rates.against(50_000, defaultSchema, report.AtLeast(2)),
		rates.against(50_000, queueSchema, report.AtLeast(1.2)),
		rates.against(50_000, claimed, report.AtLeast(2.5)),
		rates.against(50_000, forwarder, report.Bound{}),
	}
	if !l.Quick {
		for _, control := range controls {
			claims = append(claims, rates.against(50_000, control, report.Bound{}))
		}
		claims = append(claims,
			rates.against(200_000, defaultSchema, report.AtLeast(6)),
			rates.against(200_000, queueSchema, report.AtLeast(1.8)))
	}
	return report.Result{Claims: claims, Lines: rates.lines(runs)}, nil
}

// drainRates are events per second, by contestant and backlog.
type drainRates map[string]map[int]measure.Series

func (r drainRates) of(c rival.Contestant, n int) measure.Series { return r[c.Name()][n] }

func (r drainRates) against(n int, peer rival.Contestant, bound report.Bound) report.Claim {
	return report.Claim{
		What: fmt.Sprintf("drain %s pending events, against %s", report.Number(float64(n)),
			peer.Name()),
		Values: r.of(relay, n).Over(r.of(peer, n)), Unit: "×", Bound: bound,
		Detail: fmt.Sprintf("%s against %s", perSecond(r.of(relay, n)), perSecond(r.of(peer, n))),
	}
}

func (r drainRates) lines(runs []drainRun) []report.Line {
	var all []report.Line
	for _, c := range lines {
		line := report.Line{Name: c.Name()}
		for _, run := range runs {
			if rate := r.of(c, run.events); len(rate) > 0 {
				line.Points = append(line.Points, report.Point{Backlog: run.events, Rate: rate})
			}
		}
		all = append(all, line)
	}
	return all
}

// drainRun is one backlog, with the contestants that publish it and how often they do.
type drainRun struct {
	events, rounds int
	contestants    []rival.Contestant
}

func (d drainRun) measure(ctx context.Context, l *lab.Lab, rates drainRates) error {
	var variants []func() (float64, error)
	for _, c := range d.contestants {
		variants = append(variants, func() (float64, error) {
			return drainOnce(ctx, l, c, rival.Uniform(d.events))
		})
	}
	all, err := interleave(d.rounds, variants...)
	if err != nil {
		return err
	}
	for i, c := range d.contestants {
		if rates[c.Name()] == nil {
			rates[c.Name()] = map[int]measure.Series{}
		}
		rates[c.Name()][d.events] = all[i]
	}
	return nil
}

// drainOnce has a contestant publish a workload from a database of its own.
func drainOnce(
	ctx context.Context, l *lab.Lab, c rival.Contestant, w rival.Workload,
) (rate float64, err error) {
	db, err := backlog(ctx, l, c, w)
	if err != nil {
		return 0, err
	}
	defer db.Drop()
	return drainFrom(ctx, db, c, w.Events)
}

// backlog makes a database in which the events of a workload are pending.
func backlog(
	ctx context.Context, l *lab.Lab, c rival.Contestant, w rival.Workload,
) (*lab.Database, error) {
	db, err := l.Database(ctx, drainConns)
	if err != nil {
		return nil, err
	}
	if err := c.Prepare(ctx, db); err != nil {
		db.Drop()
		return nil, fmt.Errorf("%s: prepare: %w", c.Name(), err)
	}
	if err := fill(ctx, db, c, w); err != nil {
		db.Drop()
		return nil, err
	}
	if err := db.Warm(ctx); err != nil {
		db.Drop()
		return nil, err
	}
	return db, nil
}

func fill(ctx context.Context, db *lab.Database, c rival.Contestant, w rival.Workload) error {
	if err := c.Fill(ctx, db, w.Orders()); err != nil {
		return fmt.Errorf("%s: fill: %w", c.Name(), err)
	}
	return db.Analyse(ctx)
}

// drainFrom measures how fast a contestant publishes the n events that are pending.
func drainFrom(
	ctx context.Context, db *lab.Database, c rival.Contestant, n int,
) (rate float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, drainLimit)
	defer cancel()
	runtime.GC() // frees what filling has left
	took, err := c.Drain(ctx, db, n)
	if err != nil {
		return 0, fmt.Errorf("%s: drain: %w", c.Name(), err)
	}
	rate = measure.Rate(n, took)
	slog.Info("drained", "contestant", c.Name(), "events", n, "per second", int(rate))
	return rate, nil
}
