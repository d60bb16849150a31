package scenario

import (
	"context"
	"fmt"

	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/report"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// retention compares three drains: one beside many retained events, one with retention and none
// retained yet, and one without retention.
func retention(ctx context.Context, l *lab.Lab) (report.Result, error) {
	n, kept := lab.Pick(l, 200_000, 50_000), lab.Pick(l, 5_000_000, 200_000)
	keeping := rival.Relay{Retain: true}
	var dbs [3]*lab.Database
	for i := range dbs {
		db, err := backlog(ctx, l, keeping, rival.Workload{})
		if err != nil {
			return report.Result{}, err
		}
		defer db.Drop()
		_, err = keeping.Store(db).Maintain(ctx, storage.MaintainParams{}) // creates the partitions
		if err != nil {
			return report.Result{}, err
		}
		dbs[i] = db
	}
	if err := keep(ctx, dbs[0], kept); err != nil {
		return report.Result{}, err
	}
	rates, err := interleave(lab.Pick(l, 5, 2),
		func() (float64, error) { return fillAndDrain(ctx, dbs[0], keeping, n) },
		func() (float64, error) {
			rate, err := fillAndDrain(ctx, dbs[1], keeping, n)
			if err == nil {
				_, err = dbs[1].Exec(ctx, "TRUNCATE outbox_sent")
			}
			return rate, err
		},
		func() (float64, error) { return fillAndDrain(ctx, dbs[2], relay, n) })
	if err != nil {
		return report.Result{}, err
	}
	what := fmt.Sprintf("drain %s with %s published events retained", report.Number(float64(n)),
		report.Number(float64(kept)))
	return report.Result{Claims: []report.Claim{
		{
			What:   what + ", against none retained yet",
			Values: rates[0].Over(rates[1]), Unit: "×", Bound: report.AtLeast(0.9),
			Detail: fmt.Sprintf("%s against %s", perSecond(rates[0]), perSecond(rates[1])),
		},
		{
			What:   what + ", against retention switched off",
			Values: rates[0].Over(rates[2]), Unit: "×",
			Detail: fmt.Sprintf("%s against %s", perSecond(rates[0]), perSecond(rates[2])),
		},
	}}, nil
}

func fillAndDrain(
	ctx context.Context, db *lab.Database, r rival.Relay, n int,
) (rate float64, err error) {
	if err := fill(ctx, db, relay, rival.Uniform(n)); err != nil {
		return 0, err
	}
	return drainFrom(ctx, db, r, n)
}

// keep inserts published events, and vacuums, as the server would otherwise do during a round.
func keep(ctx context.Context, db *lab.Database, n int) error {
	order := rival.JSON(rival.Uniform(1).Orders()[0])
	_, err := db.Exec(ctx, `
		INSERT INTO outbox_sent (shard, seq, id, type, version, topic, key, payload,
			content_type, attempts, created_at, sent_at)
		SELECT n % 16, -n, gen_random_uuid(), 'order.placed', 1, 'shop.orders',
		       gen_random_uuid()::text, $2, 'application/json', 0, now(), now()
		FROM generate_series(1, $1::integer) AS n`, n, order)
	if err != nil {
		return fmt.Errorf("bench: keep published events: %w", err)
	}
	if _, err := db.Exec(ctx, "VACUUM (ANALYZE) outbox_sent"); err != nil {
		return fmt.Errorf("bench: keep published events: %w", err)
	}
	return db.Checkpoint(ctx)
}
