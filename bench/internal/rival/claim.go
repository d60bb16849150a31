package rival

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"golang.org/x/sync/errgroup"
)

// Claim is an outbox as teams write it by hand: a worker claims a batch of rows in order, so that
// other workers skip them, publishes them without an open transaction, and marks them as sent.
// Several workers keep no order among their batches.
type Claim struct {
	Workers int  // at least 1
	Batch   int  // rows that a worker claims at once; at least 1
	Delete  bool // rows are deleted in bulk instead of being marked
}

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
		WHERE seq IN (SELECT seq FROM claimed WHERE state = 'pending'
			ORDER BY seq LIMIT %d FOR UPDATE SKIP LOCKED)
		RETURNING seq, id, type, version, topic, key, payload, content_type, created_at`
	markSent   = `UPDATE claimed SET state = 'sent', sent_at = now() WHERE seq = ANY ($1)`
	deleteSent = `DELETE FROM claimed WHERE seq = ANY ($1)`
)

// Name implements Contestant.
func (c Claim) Name() string {
	workers, sent := "workers", "marked"
	if c.Workers == 1 {
		workers = "worker"
	}
	if c.Delete {
		sent = "deleted"
	}
	return fmt.Sprintf("rows claimed by SKIP LOCKED, %d %s, batch %d, %s", c.Workers, workers,
		c.Batch, sent)
}

// Prepare implements Contestant.
func (Claim) Prepare(ctx context.Context, db *lab.Database) error {
	_, err := db.Exec(ctx, claimTable)
	return err
}

// Fill implements Contestant.
func (Claim) Fill(ctx context.Context, db *lab.Database, orders []Order) error {
	return InBatches(orders, func(batch []Order) error {
		return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
			return copyInto(ctx, tx, "claimed", eventColumns, batch, eventRow)
		})
	})
}

// Drain implements Contestant. The last event is published when it is marked or deleted.
func (c Claim) Drain(ctx context.Context, db *lab.Database, n int) (time.Duration, error) {
	var (
		publisher Counter
		recorded  atomic.Int64 // the time until the last batch was recorded
	)
	began := time.Now()
	workers, working := errgroup.WithContext(ctx)
	for range c.Workers {
		workers.Go(func() error {
			for {
				found, err := c.publishBatch(working, db, &publisher)
				if err != nil || !found {
					return err
				}
				recorded.Store(int64(time.Since(began)))
			}
		})
	}
	err := workers.Wait()
	return time.Duration(recorded.Load()), errors.Join(err, exactly(n, publisher.Load()),
		noneLeft(ctx, db, "SELECT count(*) FROM claimed WHERE state <> 'sent'"))
}

func (c Claim) publishBatch(
	ctx context.Context, db *lab.Database, publisher outbox.Publisher,
) (found bool, err error) {
	batch, err := c.claim(ctx, db)
	if err != nil || len(batch) == 0 {
		return false, err
	}
	sent := make([]int64, len(batch))
	for i := range batch {
		if err := publisher.Publish(ctx, &batch[i].Message); err != nil {
			return true, err
		}
		sent[i] = batch[i].Seq
	}
	record := markSent
	if c.Delete {
		record = deleteSent
	}
	_, err = db.Exec(ctx, record, sent)
	return true, err
}

// claim returns the rows that a worker is to publish, in order. It returns none if other workers
// have claimed all that are left.
func (c Claim) claim(ctx context.Context, db *lab.Database) ([]storage.Item, error) {
	// The planner sees the limit because it is in the text of the statement.
	rows, err := db.Query(ctx, fmt.Sprintf(claimBatch, c.Batch))
	if err != nil {
		return nil, err
	}
	batch, err := pgx.CollectRows(rows, scanEvent)
	// RETURNING does not promise an order.
	slices.SortFunc(batch, func(a, b storage.Item) int { return cmp.Compare(a.Seq, b.Seq) })
	return batch, err
}

func scanEvent(row pgx.CollectableRow) (i storage.Item, err error) {
	err = row.Scan(&i.Seq, &i.ID, &i.Type, &i.Version, &i.Topic, &i.Key, &i.Payload,
		&i.ContentType, &i.CreatedAt)
	return i, err
}
