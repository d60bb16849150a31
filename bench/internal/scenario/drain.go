package scenario

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/report"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
)

const drainConns = 12 // of the pool, for every contestant

// drainOnce fills an empty database with the workload, and measures how long the contestant takes to publish it.
func drainOnce(ctx context.Context, l *lab.Lab, c rival.Contestant, w rival.Workload) (rate float64, err error) {
	db, err := l.Database(ctx, drainConns)
	if err != nil {
		return 0, err
	}
	defer db.Drop()
	if err := c.Prepare(ctx, db); err != nil {
		return 0, fmt.Errorf("%s: prepare: %w", c.Name(), err)
	}
	if err := c.Fill(ctx, db, w.Orders()); err != nil {
		return 0, fmt.Errorf("%s: fill: %w", c.Name(), err)
	}
	if err := db.Settle(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := c.Drain(ctx, db, w.Events); err != nil {
		return 0, fmt.Errorf("%s: drain: %w", c.Name(), err)
	}
	rate = measure.Rate(w.Events, time.Since(began))
	slog.Info("drained", "contestant", c.Name(), "events", w.Events, "per second", int(rate))
	return rate, nil
}

func drain(ctx context.Context, l *lab.Lab) (report.Result, error) {
	for range 3 {
		for _, n := range []int{50_000, 200_000} {
			if _, err := drainOnce(ctx, l, rival.Relay{}, rival.Uniform(n)); err != nil {
				return report.Result{}, err
			}
		}
	}
	return report.Result{}, nil
}
