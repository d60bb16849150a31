package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// interleave measures each variant once in each round, so that changes on the machine affect all of
// them, and in another order each time, so that none always follows the same other one.
func interleave(rounds int, variants ...func() (float64, error)) ([]measure.Series, error) {
	all := make([]measure.Series, len(variants))
	for range rounds {
		for _, i := range rand.Perm(len(variants)) {
			value, err := variants[i]()
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], value)
		}
	}
	return all, nil
}

// drainTo has a relay publish the n events that are pending to publisher.
func drainTo(
	ctx context.Context, db *lab.Database, r rival.Relay, publisher outbox.Publisher, n int,
) error {
	relay, err := r.New(db, publisher)
	if err != nil {
		return err
	}
	stats, err := relay.RunOnce(ctx)
	if err == nil && stats.Published != int64(n) {
		err = fmt.Errorf("bench: %d of %d events were published", stats.Published, n)
	}
	return err
}

// wait reports whether ctx is alive after d.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
