//go:build unix

package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
)

const keys = 40

// schema has the application's tables: aggregates with a number that grows with each event, the
// committed events, and the effects.
const schema = `
CREATE TABLE entity (entity text PRIMARY KEY, n bigint NOT NULL DEFAULT 0);
INSERT INTO entity (entity) SELECT 'key ' || i FROM generate_series(0, 39) AS i;
CREATE UNLOGGED TABLE before_crash (n integer);
CREATE TABLE truth (event_id uuid PRIMARY KEY, entity text NOT NULL, n bigint NOT NULL);
CREATE TABLE effect (event_id uuid NOT NULL, entity text NOT NULL, n bigint NOT NULL)`

// producer commits business transactions one after the other, as well as its database allows.
type producer struct {
	pool                        *pgxpool.Pool
	store                       *events.Store
	random                      *rand.Rand
	committed, rolledBack, lost *atomic.Int64
}

var errRollBack = fmt.Errorf("the business changed its mind")

func (p *producer) run(ctx context.Context) {
	for ctx.Err() == nil {
		pause(ctx, time.Duration(p.random.IntN(12))*time.Millisecond)
		err := pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error { return p.transact(ctx, tx) })
		switch {
		case err == nil:
			p.committed.Add(1)
		case err == errRollBack:
			p.rolledBack.Add(1)
		default:
			p.lost.Add(1) // committed or not: the table truth knows
		}
	}
}

// transact changes an aggregate under its row lock and enqueues an event. Some of the transactions
// end late, and some are rolled back.
func (p *producer) transact(ctx context.Context, tx pgx.Tx) error {
	key := fmt.Sprint("key ", p.random.IntN(keys))
	for range 1 + p.random.IntN(3) {
		var n int64
		if err := tx.QueryRow(ctx, `UPDATE entity SET n = n + 1 WHERE entity = $1 RETURNING n`,
			key).Scan(&n); err != nil {
			return err
		}
		id, err := p.store.EnqueueThingHappenedV1(ctx, tx,
			events.ThingHappenedV1{Entity: key, N: n})
		if err != nil {
			return err
		}
		if err := record(ctx, tx, id, key, n); err != nil {
			return err
		}
	}
	switch p.random.IntN(20) {
	case 0, 1:
		return errRollBack
	case 2:
		pause(ctx, time.Duration(p.random.IntN(1500))*time.Millisecond)
	case 3, 4:
		id, err := p.store.EnqueueStrayHappenedV1(ctx, tx,
			events.StrayHappenedV1{Entity: "no key", N: 1})
		if err != nil {
			return err
		}
		return record(ctx, tx, id, "", 0)
	}
	return nil
}

func record(ctx context.Context, tx pgx.Tx, id uuid.UUID, key string, n int64) error {
	_, err := tx.Exec(ctx, `INSERT INTO truth (event_id, entity, n) VALUES ($1, $2, $3)`, id, key,
		n)
	return err
}

// pause waits: between a producer's transactions, or within one.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
