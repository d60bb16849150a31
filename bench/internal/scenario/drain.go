package scenario

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/report"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
)

const drainConns = 12 // of the pool, for every contestant

// peers are what is measured beside the relay, in the order of the plot's legend.
var (
	relay         = rival.Relay{}
	river         = rival.River{}
	defaultSchema = rival.Watermill{Batch: 1000}
	smallBatch    = rival.Watermill{Batch: 100}
	queueSchema   = rival.Watermill{Batch: 1000, Queue: true}
	forwarder     = rival.Forwarder{Batch: 1000}
	claim         = rival.Claim{}
)

// drain has all contestants publish the same backlogs.
func drain(ctx context.Context, l *lab.Lab) (report.Result, error) {
	all := []rival.Contestant{relay, queueSchema, forwarder, defaultSchema, claim, river, smallBatch}
	fast := []rival.Contestant{relay, queueSchema, forwarder, defaultSchema}
	runs := []drainRun{{1000, 3, all}, {10_000, 3, all}, {50_000, 5, all}, {200_000, 3, fast}, {1_000_000, 1, all[:2]}}
	if l.Quick {
		runs = []drainRun{{10_000, 1, all}, {50_000, 1, all}}
	}
	rates := map[string]map[int]measure.Series{}
	for _, run := range runs {
		if err := run.measure(ctx, l, rates); err != nil {
			return report.Result{}, err
		}
	}
	of := func(c rival.Contestant, n int) measure.Series { return rates[c.Name()][n] }
	var r report.Result
	against := func(n int, peer rival.Contestant, atLeast float64) {
		r.Claims = append(r.Claims, report.Claim{
			What:   fmt.Sprintf("drain %s pending events, against %s", report.Number(float64(n)), peer.Name()),
			Values: of(relay, n).Over(of(peer, n)), Unit: "×", Bound: report.AtLeast(atLeast),
			Detail: fmt.Sprintf("%s against %s", perSecond(of(relay, n)), perSecond(of(peer, n))),
		})
	}
	against(50_000, river, 10)
	against(50_000, defaultSchema, 2)
	against(50_000, queueSchema, 1.2)
	against(50_000, claim, 2.5)
	if !l.Quick {
		against(200_000, defaultSchema, 6)
		against(200_000, queueSchema, 1.8)
	}
	for _, c := range all {
		line := report.Line{Name: c.Name()}
		for _, run := range runs {
			if rate := of(c, run.events); len(rate) > 0 {
				line.Points = append(line.Points, report.Point{Backlog: run.events, Rate: rate})
			}
		}
		r.Lines = append(r.Lines, line)
	}
	return r, nil
}

// drainRun is one backlog, and who publishes it how often.
type drainRun struct {
	events, rounds int
	contestants    []rival.Contestant
}

func (d drainRun) measure(ctx context.Context, l *lab.Lab, rates map[string]map[int]measure.Series) error {
	for range d.rounds {
		for _, c := range d.contestants {
			rate, err := drainOnce(ctx, l, c, rival.Uniform(d.events))
			if err != nil {
				return err
			}
			if rates[c.Name()] == nil {
				rates[c.Name()] = map[int]measure.Series{}
			}
			rates[c.Name()][d.events] = append(rates[c.Name()][d.events], rate)
		}
	}
	return nil
}

// drainOnce has a contestant publish a workload from a database of its own.
func drainOnce(ctx context.Context, l *lab.Lab, c rival.Contestant, w rival.Workload) (rate float64, err error) {
	db, err := backlog(ctx, l, c, w)
	if err != nil {
		return 0, err
	}
	defer db.Drop()
	return drainFrom(ctx, db, c, w.Events)
}

// backlog makes a database in which the events of a workload are pending.
func backlog(ctx context.Context, l *lab.Lab, c rival.Contestant, w rival.Workload) (*lab.Database, error) {
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
	return db, nil
}

func fill(ctx context.Context, db *lab.Database, c rival.Contestant, w rival.Workload) error {
	if err := c.Fill(ctx, db, w.Orders()); err != nil {
		return fmt.Errorf("%s: fill: %w", c.Name(), err)
	}
	return db.Settle(ctx)
}

// drainFrom measures how fast a contestant publishes the n events that are pending.
func drainFrom(ctx context.Context, db *lab.Database, c rival.Contestant, n int) (rate float64, err error) {
	took, err := c.Drain(ctx, db, n)
	if err != nil {
		return 0, fmt.Errorf("%s: drain: %w", c.Name(), err)
	}
	rate = measure.Rate(n, took)
	slog.Info("drained", "contestant", c.Name(), "events", n, "per second", int(rate))
	return rate, nil
}
