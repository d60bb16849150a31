package scenario

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/report"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
)

const bulkEvents = 1000 // in one transaction

// bulk compares enqueueing many events in one transaction with the least that it can cost: a COPY
// of the same rows into the same table.
func bulk(ctx context.Context, l *lab.Lab) (report.Result, error) {
	db, err := l.Database(ctx, 1)
	if err != nil {
		return report.Result{}, err
	}
	defer db.Drop()
	if err := relay.Prepare(ctx, db); err != nil {
		return report.Result{}, err
	}
	orders := rival.Uniform(bulkEvents).Orders()
	rows, err := encode(ctx, orders)
	if err != nil {
		return report.Result{}, err
	}
	rates, err := interleave(lab.Pick(l, 15, 5),
		bulkRate(ctx, db, "Enqueue", func(tx pgx.Tx) error {
			return rival.EnqueueAll(ctx, tx, orders)
		}),
		bulkRate(ctx, db, "COPY", func(tx pgx.Tx) error { return copyRows(ctx, tx, rows) }),
		bulkRate(ctx, db, "encoding and COPY", func(tx pgx.Tx) error {
			return rival.Bare{}.Copy(ctx, tx, orders)
		}))
	if err != nil {
		return report.Result{}, err
	}
	return report.Result{Claims: []report.Claim{{
		What: fmt.Sprintf("enqueue %s events in one transaction, against a COPY of rows that "+
			"are already encoded", report.Number(bulkEvents)),
		Values: rates[0].Over(rates[1]), Unit: "×", Bound: report.AtLeast(0.6),
		Detail: fmt.Sprintf(
			"%s against %s; against a COPY that encodes its rows, too (%s): %.2f ×",
			perSecond(rates[0]), perSecond(rates[1]), perSecond(rates[2]),
			rates[0].Over(rates[2]).Median()),
	}}}, nil
}

// bulkRate measures how many events per second insert adds to an empty outbox, over several
// transactions, the first of which does not count.
func bulkRate(
	ctx context.Context, db *lab.Database, name string, insert func(pgx.Tx) error,
) func() (float64, error) {
	const counted = 10
	return func() (float64, error) {
		if _, err := db.Exec(ctx, "TRUNCATE outbox"); err != nil {
			return 0, fmt.Errorf("bench: empty the outbox: %w", err)
		}
		if err := db.Checkpoint(ctx); err != nil {
			return 0, err
		}
		var took time.Duration
		for i := range 1 + counted {
			began := time.Now()
			if err := pgx.BeginFunc(ctx, db, insert); err != nil {
				return 0, fmt.Errorf("bench: %s: %w", name, err)
			}
			if i > 0 {
				took += time.Since(began)
			}
		}
		rate := measure.Rate(counted*bulkEvents, took)
		slog.Info("enqueued in bulk", "by", name, "per second", int(rate))
		return rate, expectRows(ctx, db, "outbox", (1+counted)*bulkEvents)
	}
}

// encode returns the rows of the generated code: all columns that it fills and that are not NULL.
func encode(ctx context.Context, orders []rival.Order) ([][]any, error) {
	encoded, err := rival.Encode(ctx, orders)
	if err != nil {
		return nil, err
	}
	rows := make([][]any, len(orders))
	for i, r := range encoded {
		rows[i] = []any{
			r.Shard, [16]byte(r.ID), r.Type, r.Version, r.Topic, r.Key, r.Payload, r.ContentType,
		}
	}
	return rows, nil
}

func copyRows(ctx context.Context, tx pgx.Tx, rows [][]any) error {
	columns := []string{"shard", "id", "type", "version", "topic", "key", "payload", "content_type"}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"outbox"}, columns, pgx.CopyFromRows(rows))
	return err
}
