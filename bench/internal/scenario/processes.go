package scenario

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench/events"
	"github.com/outboxgen/outboxgen/bench/internal/child"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/report"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

const drainTimeout = 5 * time.Minute // for one drain, with its preparation

// sharing is the configuration of relays that share an outbox. They balance their shards at every
// heartbeat; to wait ten seconds for the next one would add nothing to a benchmark.
var sharing = outbox.Config{Lease: 3 * time.Second}

// processes has relays in one, two and four processes drain the same backlog.
func processes(ctx context.Context, l *lab.Lab) (report.Result, error) {
	orders := rival.Uniform(lab.Pick(l, 200_000, 50_000)).Orders()
	relays := []int{1, 2, 4}
	strays, drains := 0, 0
	var variants []func() (float64, error)
	for _, n := range relays {
		variants = append(variants, func() (float64, error) {
			rate, stray, err := drainTogether(ctx, l, n, orders)
			strays += stray
			drains++
			if err != nil {
				return 0, fmt.Errorf("%d relay processes: %w", n, err)
			}
			return rate, nil
		})
	}
	rates, err := interleave(lab.Pick(l, 5, 2), variants...)
	if err != nil {
		return report.Result{}, err
	}
	what := "drain " + report.Number(float64(len(orders))) + " pending events"
	result := report.Result{Claims: []report.Claim{{
		What:   what + " with 1, 2 and 4 relay processes: lost, or published twice",
		Values: measure.Series{float64(strays)}, Unit: "events", Bound: report.AtMost(0),
		Detail: fmt.Sprintf("by what the processes recorded, in %d drains", drains),
	}}}
	for i, n := range relays[1:] {
		result.Claims = append(result.Claims, report.Claim{
			What:   fmt.Sprintf("%s: %d relay processes against 1", what, n),
			Values: rates[i+1].Over(rates[0]), Unit: "×", Bound: report.AtLeast(1),
			Detail: fmt.Sprintf("%d processes %s, 1 process %s", n, perSecond(rates[i+1]),
				perSecond(rates[0])),
		})
	}
	return result, nil
}

// drainTogether has n relays, which have already balanced their shards, publish orders that are
// committed at once. It returns the rate from the commit to the empty outbox, and how many events
// were not published exactly once.
func drainTogether(
	ctx context.Context, l *lab.Lab, n int, orders []rival.Order,
) (rate float64, strays int, err error) {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	db, err := l.Database(ctx, drainConns)
	if err != nil {
		return 0, 0, err
	}
	defer db.Drop()
	if err := (rival.Relay{}).Prepare(ctx, db); err != nil {
		return 0, 0, err
	}
	var ids []uuid.UUID
	reports, err := child.Run(ctx, n, db.URL, sharing, func(f *child.Fleet) (err error) {
		ids, rate, err = commitAndDrain(ctx, db, f, orders)
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	records := make([][]uuid.UUID, n)
	shares := make([]string, n)
	for i, r := range reports {
		records[i], shares[i] = r.IDs, report.Number(float64(len(r.IDs)))
	}
	slog.Info("drained", "relay processes", n, "events", len(orders), "per second", int(rate),
		"shares", strings.Join(shares, " + "))
	return rate, countStrays(ids, records), expectEmpty(ctx, db)
}

// commitAndDrain waits until the relays have balanced their shards, commits orders at once, and
// waits until they are published. It returns the events' ids, and the rate from the commit to the
// empty outbox.
func commitAndDrain(
	ctx context.Context, db *lab.Database, f *child.Fleet, orders []rival.Order,
) (ids []uuid.UUID, rate float64, err error) {
	if err := f.Await(ctx, sharedOut); err != nil {
		return nil, 0, err
	}
	if ids, err = commitAtOnce(ctx, db, orders); err != nil {
		return nil, 0, err
	}
	began := time.Now()
	// outbox.ForwardWakeups would do this after the commit.
	if _, err := events.NewStore(db.Pool).Notify(ctx, storage.NotifyParams{}); err != nil {
		return nil, 0, err
	}
	err = f.Await(ctx, settled(len(orders)))
	return ids, measure.Rate(len(orders), time.Since(began)), err
}

// sharedOut reports whether each relay owns as many shards as the others.
func sharedOut(all []child.Progress) bool {
	return !slices.ContainsFunc(all, func(p child.Progress) bool {
		return p.Shards != events.Shards/len(all)
	})
}

// settled returns a condition: that the relays have settled n events together.
func settled(n int) func([]child.Progress) bool {
	return func(all []child.Progress) bool {
		var sum int64
		for _, p := range all {
			sum += p.Settled
		}
		return sum >= int64(n)
	}
}

// commitAtOnce enqueues all orders in one transaction, has the server write its buffers, and
// commits. It returns the events' ids.
func commitAtOnce(
	ctx context.Context, db *lab.Database, orders []rival.Order,
) (ids []uuid.UUID, err error) {
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		err := rival.InBatches(orders, func(batch []rival.Order) error {
			return rival.EnqueueAll(ctx, tx, batch)
		})
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, "SELECT id FROM outbox")
		if err != nil {
			return err
		}
		if ids, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID]); err != nil {
			return err
		}
		return db.Checkpoint(ctx)
	})
	if err == nil && len(ids) != len(orders) {
		err = fmt.Errorf("bench: %d orders made %d events", len(orders), len(ids))
	}
	return ids, err
}

// countStrays counts the events that are not in the records exactly once, and the entries of the
// records that are no events.
func countStrays[ID comparable](events []ID, records [][]ID) (strays int) {
	times := make(map[ID]int, len(events))
	for _, id := range events {
		times[id] = 0
	}
	for _, id := range slices.Concat(records...) {
		if _, known := times[id]; !known {
			strays++
			continue
		}
		times[id]++
	}
	for _, n := range times {
		if n != 1 {
			strays++
		}
	}
	return strays
}

// expectEmpty returns an error if events are left in the outbox or among the dead letters.
func expectEmpty(ctx context.Context, db *lab.Database) error {
	var left int
	const count = "SELECT (SELECT count(*) FROM outbox) + (SELECT count(*) FROM outbox_dead)"
	if err := db.QueryRow(ctx, count).Scan(&left); err != nil {
		return fmt.Errorf("bench: count what is left: %w", err)
	}
	if left > 0 {
		return fmt.Errorf("bench: %d events are left, though as many were settled as there were",
			left)
	}
	return nil
}
