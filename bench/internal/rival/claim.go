package rival

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// Claim is an outbox as one writes it by hand: a worker claims a batch of rows in their order, so that other workers skip them,
// publishes them with no transaction open, and marks them as sent.
type Claim struct{}

const (
	claimTable = `
		CREATE TABLE claimed (
			seq          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
			id           uuid        NOT NULL,
			type         text        NOT NULL,
			version      integer     NOT NULL,
			topic        text        NOT NULL,
			key          text        NOT NULL,
			payload      bytea       NOT NULL,
			content_type text        NOT NULL,
			state        text        NOT NULL DEFAULT 'pending',
			attempts     integer     NOT NULL DEFAULT 0,
			created_at   timestamptz NOT NULL DEFAULT now(),
			claimed_at   timestamptz,
			sent_at      timestamptz
		);
		CREATE INDEX claimed_pending ON claimed (seq) WHERE state = 'pending'`
	claimBatch = `
		UPDATE claimed SET state = 'claimed', claimed_at = now(), attempts = attempts + 1
		WHERE seq IN (SELECT seq FROM claimed WHERE state = 'pending' ORDER BY seq LIMIT 500 FOR UPDATE SKIP LOCKED)
		RETURNING seq, id, type, version, topic, key, payload, content_type, created_at`
	markSent = `UPDATE claimed SET state = 'sent', sent_at = now() WHERE seq = ANY ($1)`
)

// Name implements Contestant.
func (Claim) Name() string { return "rows claimed by SKIP LOCKED, batch 500" }

// Prepare implements Contestant.
func (Claim) Prepare(ctx context.Context, db *lab.Database) error {
	_, err := db.Exec(ctx, claimTable)
	return err
}

// Fill implements Contestant.
func (Claim) Fill(ctx context.Context, db *lab.Database, orders []Order) error {
	return inBatches(orders, func(batch []Order) error {
		return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
			return copyInto(ctx, tx, "claimed", eventColumns, batch, eventRow)
		})
	})
}

// Drain implements Contestant. The last event is published when it is marked as sent.
func (Claim) Drain(ctx context.Context, db *lab.Database, n int) (time.Duration, error) {
	var publisher Counter
	began := time.Now()
	for publisher.Load() < int64(n) {
		found, err := publishBatch(ctx, db, &publisher)
		if err != nil {
			return 0, err
		}
		if !found {
			break
		}
	}
	took := time.Since(began)
	return took, errors.Join(exactly(n, publisher.Load()), noneLeft(ctx, db, "SELECT count(*) FROM claimed WHERE state <> 'sent'"))
}

func publishBatch(ctx context.Context, db *lab.Database, publisher outbox.Publisher) (found bool, err error) {
	rows, err := db.Query(ctx, claimBatch)
	if err != nil {
		return false, err
	}
	batch, err := pgx.CollectRows(rows, scanEvent)
	if err != nil {
		return false, err
	}
	// RETURNING promises no order.
	slices.SortFunc(batch, func(a, b outbox.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	sent := make([]int64, len(batch))
	for i := range batch {
		if err := publisher.Publish(ctx, &batch[i]); err != nil {
			return true, err
		}
		sent[i] = batch[i].Seq
	}
	_, err = db.Exec(ctx, markSent, sent)
	return len(batch) > 0, err
}

func scanEvent(row pgx.CollectableRow) (m outbox.Message, err error) {
	err = row.Scan(&m.Seq, &m.ID, &m.Type, &m.Version, &m.Topic, &m.Key, &m.Payload, &m.ContentType, &m.CreatedAt)
	return m, err
}
