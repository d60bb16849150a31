package rival

import (
	"context"
	"hash/fnv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench/events"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// Bare shows the least that enqueueing can cost: it inserts the same rows as the generated code,
// with pgx alone.
type Bare struct{}

// Name implements Enqueuer.
func (Bare) Name() string { return "bare pgx" }

// Prepare implements Enqueuer.
func (Bare) Prepare(ctx context.Context, db *lab.Database) error { return Relay{}.Prepare(ctx, db) }

// Enqueue implements Enqueuer.
func (Bare) Enqueue(ctx context.Context, tx pgx.Tx, o Order) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO outbox (shard, id, type, version, topic, key, payload, content_type)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`, outboxRow(o)...)
	return err
}

// Copy adds orders to tx by the COPY protocol.
func (Bare) Copy(ctx context.Context, tx pgx.Tx, orders []Order) error {
	return copyInto(ctx, tx, "outbox", append([]string{"shard"}, eventColumns...), orders,
		outboxRow)
}

func outboxRow(o Order) []any {
	return append([]any{shardOf(o.EventKey())}, eventRow(o)...)
}

// shardOf maps keys to shards as the generated code does.
func shardOf(key string) int32 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	return int32(h.Sum64() % events.Shards)
}

// eventColumns are those that eventRow fills.
var eventColumns = []string{"id", "type", "version", "topic", "key", "payload", "content_type"}

func eventRow(o Order) []any {
	id, t := uuid.Must(uuid.NewV7()), o.EventType()
	return []any{
		[16]byte(id), t.Name, int32(t.Version), t.Topic, o.EventKey(), JSON(o), outbox.ContentType,
	}
}

func copyInto(
	ctx context.Context,
	tx pgx.Tx,
	table string,
	columns []string,
	orders []Order,
	row func(Order) []any,
) error {
	source := pgx.CopyFromSlice(len(orders), func(i int) ([]any, error) {
		return row(orders[i]), nil
	})
	_, err := tx.CopyFrom(ctx, pgx.Identifier{table}, columns, source)
	return err
}
