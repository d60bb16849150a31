package scenario

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/report"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// held compares the drain of a backlog of many keys, each of which has been refused once and may be
// retried, with a drain without refusals.
func held(ctx context.Context, l *lab.Lab) (report.Result, error) {
	w := rival.Uniform(lab.Pick(l, 200_000, 50_000))
	rates, err := interleave(lab.Pick(l, 3, 2),
		func() (float64, error) { return drainHeld(ctx, l, w, false) },
		func() (float64, error) { return drainHeld(ctx, l, w, true) })
	if err != nil {
		return report.Result{}, err
	}
	return report.Result{Claims: []report.Claim{{
		What: fmt.Sprintf("drain %s pending events after every key was refused once, against "+
			"without", report.Number(float64(w.Events))),
		Values: rates[1].Over(rates[0]), Unit: "×", Bound: report.AtLeast(0.5),
		Detail: fmt.Sprintf("%s against %s", perSecond(rates[1]), perSecond(rates[0])),
	}}}, nil
}

// refusing is a publisher that refuses everything until it is switched to counting.
type refusing struct {
	rival.Counter
	up atomic.Bool
}

var errRefused = errors.New("bench: refused")

// Publish implements outbox.Publisher.
func (r *refusing) Publish(ctx context.Context, m *outbox.Message) error {
	if !r.up.Load() {
		return errRefused
	}
	return r.Counter.Publish(ctx, m)
}

// drainHeld measures the time from when the broker accepts events until the last one is settled,
// with a relay that is already running.
func drainHeld(
	ctx context.Context, l *lab.Lab, w rival.Workload, refuse bool,
) (rate float64, err error) {
	db, err := backlog(ctx, l, relay, w)
	if err != nil {
		return 0, err
	}
	defer db.Drop()
	ctx, cancel := context.WithTimeout(ctx, drainLimit)
	defer cancel()
	var publisher refusing
	publisher.up.Store(!refuse)
	r, err := rival.Relay{Config: outbox.Config{
		MaxAttempts: outbox.Unlimited, MinRetryDelay: heldFor, MaxRetryDelay: heldFor,
	}}.New(db, &publisher)
	if err != nil {
		return 0, err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- r.Run(running) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	if refuse {
		if err := untilHeld(ctx, db, r); err != nil {
			return 0, err
		}
		began = time.Now()
		publisher.up.Store(true)
	}
	for int(r.Stats().Published) < w.Events {
		if !wait(ctx, time.Millisecond) {
			return 0, fmt.Errorf("bench: %d of %d events were published: %w", r.Stats().Published,
				w.Events, ctx.Err())
		}
	}
	return measure.Rate(w.Events, time.Since(began)), nil
}

// heldFor is short in comparison with a drain, so that the relay is measured and not the delay.
const heldFor = 200 * time.Millisecond

// untilHeld waits until every key has been refused and may be retried.
func untilHeld(ctx context.Context, db *lab.Database, r *outbox.Relay) error {
	var keys int
	if err := db.QueryRow(ctx, "SELECT count(DISTINCT key) FROM outbox").Scan(&keys); err != nil {
		return err
	}
	for r.Stats().Held < keys {
		if !wait(ctx, time.Millisecond) {
			return fmt.Errorf("bench: %d of %d keys are held: %w", r.Stats().Held, keys, ctx.Err())
		}
	}
	return nil
}
