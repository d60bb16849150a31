package scenario

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench/events"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/report"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"golang.org/x/sync/errgroup"
)

const (
	consumers = 8
	// deliveryWindow is how many messages are under way to the consumers at once; within it, their
	// order is random.
	deliveryWindow = 256
	// turn is how many messages one consumer gets before the other has its turn. The number of
	// turns of a round is even, since the first consumer to handle an order inserts it, and the
	// second one updates it.
	turn = 1000
	// inboxTimeout is the time limit of the whole scenario.
	inboxTimeout = 15 * time.Minute
)

// deduplication measures the generated consumer with an inbox that has long been in use.
func deduplication(ctx context.Context, l *lab.Lab) (report.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, inboxTimeout)
	defer cancel()
	db, err := l.Database(ctx, consumers)
	if err != nil {
		return report.Result{}, err
	}
	defer db.Drop()
	known := lab.Pick(l, 10_000_000, 1_000_000)
	if err := prepareConsumer(ctx, db, known); err != nil {
		return report.Result{}, err
	}
	orders := rival.Uniform(lab.Pick(l, 20_000, 6_000)).Orders()
	var with, without, again measure.Series
	for range lab.Pick(l, 7, 3) {
		d, err := deliverRound(ctx, db, orders)
		if err != nil {
			return report.Result{}, err
		}
		with = append(with, measure.Rate(len(orders), d.with))
		without = append(without, measure.Rate(len(orders), d.without))
		again = append(again, measure.Rate(len(orders), d.again))
	}
	claim := func(what string, s measure.Series, bound report.Bound) report.Claim {
		return report.Claim{
			What: fmt.Sprintf("%d consumers, %s ids in the inbox: %s against the same handler "+
				"without inbox", consumers, report.Number(float64(known)), what),
			Values: s.Over(without), Unit: "×", Bound: bound,
			Detail: fmt.Sprintf("%s with, %s without", perSecond(s), perSecond(without)),
		}
	}
	return report.Result{Claims: []report.Claim{
		claim("new events", with, report.AtLeast(0.75)),
		claim("the same events, delivered again", again, report.Bound{}),
	}}, nil
}

// prepareConsumer creates the tables, with n events that the consumer has handled. Their ids are
// like those of the outbox, one for each millisecond until now.
func prepareConsumer(ctx context.Context, db *lab.Database, n int) error {
	if err := (rival.Relay{}).Prepare(ctx, db); err != nil {
		return err
	}
	if _, err := db.Exec(ctx, placedTable); err != nil {
		return fmt.Errorf("bench: prepare the consumer: %w", err)
	}
	began := time.Now()
	tag, err := db.Exec(ctx, `
		INSERT INTO inbox (consumer, event_id, handled_at)
		SELECT 'stock',
		       (lpad(to_hex(ms), 12, '0') || '7' || substr(random, 1, 3)
		        || '8' || substr(random, 4, 15))::uuid,
		       to_timestamp(ms / 1000.0)
		FROM (SELECT (extract(epoch FROM now()) * 1000)::bigint - $1::bigint + n AS ms,
		             md5(n::text) AS random
		      FROM generate_series(1, $1::bigint) AS n) AS event`, n)
	if err != nil {
		return fmt.Errorf("bench: fill the inbox: %w", err)
	}
	if tag.RowsAffected() != int64(n) {
		return fmt.Errorf("bench: the inbox was filled with %d ids instead of %d",
			tag.RowsAffected(), n)
	}
	if _, err := db.Exec(ctx, "VACUUM ANALYZE inbox"); err != nil {
		return fmt.Errorf("bench: vacuum the inbox: %w", err)
	}
	slog.Info("filled the inbox", "ids", n, "seconds", int(time.Since(began).Seconds()))
	return nil
}

// The consumer's table of orders, and its one statement for each event. It counts the events of an
// order, which would show events that were applied twice.
const (
	placedTable = `
		CREATE TABLE placed (
			order_id    uuid        PRIMARY KEY,
			customer_id uuid        NOT NULL,
			amount      bigint      NOT NULL,
			placed_at   timestamptz NOT NULL,
			times       bigint      NOT NULL DEFAULT 1
		)`
	upsertPlaced = `
		INSERT INTO placed (order_id, customer_id, amount, placed_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (order_id) DO UPDATE
		SET customer_id = excluded.customer_id, amount = excluded.amount,
		    placed_at = excluded.placed_at, times = placed.times + 1`
)

// stock implements events.StockConsumer.
type stock struct{}

// HandleOrderPlacedV1 implements events.StockConsumer.
func (stock) HandleOrderPlacedV1(
	ctx context.Context, tx events.StockTx, e events.OrderPlacedV1,
) error {
	_, err := tx.Exec(ctx, upsertPlaced, e.OrderID, e.CustomerID, e.Total.Amount, e.PlacedAt)
	return err
}

// withInbox returns the generated consumer.
func withInbox(db *lab.Database) inbox.Handler {
	return events.NewStock(events.NewStore(db.Pool), stock{})
}

// withoutInbox returns the same consumer, with its transaction and its decoding, but without the
// inbox.
func withoutInbox(db *lab.Database) inbox.Handler {
	return inbox.New("stock", inbox.Store[pgx.Tx](forgetful{events.NewStore(db.Pool)}),
		map[string]inbox.Route[pgx.Tx]{
			"order.placed@1": inbox.RouteTo(func(ctx context.Context, tx pgx.Tx, m *outbox.Message,
				e events.OrderPlacedV1) error {
				return stock{}.HandleOrderPlacedV1(ctx, events.StockTx{Tx: tx, Message: m}, e)
			}),
		})
}

// forgetful is a store that takes every event for a new one.
type forgetful struct{ *events.Store }

// Claim implements inbox.Store.
func (forgetful) Claim(context.Context, pgx.Tx, inbox.ClaimParams) (inbox.ClaimResult, error) {
	return inbox.ClaimResult{Claim: inbox.ClaimFresh}, nil
}

// delivered has the times of one round's deliveries.
type delivered struct{ with, without, again time.Duration }

// deliverRound delivers the orders to the consumer with an inbox and to the one without, in turns
// of some messages each, and then to the former once more.
func deliverRound(
	ctx context.Context, db *lab.Database, orders []rival.Order,
) (d delivered, err error) {
	if _, err := db.Exec(ctx, "TRUNCATE placed"); err != nil {
		return d, fmt.Errorf("bench: empty the consumer's table: %w", err)
	}
	if err := db.Analyse(ctx); err != nil {
		return d, err
	}
	with, err := newDelivery(ctx, withInbox(db), orders)
	if err != nil {
		return d, err
	}
	without, err := newDelivery(ctx, withoutInbox(db), orders)
	if err != nil {
		return d, err
	}
	first, second := with, without
	for i := 0; i < len(orders); i += turn {
		for _, one := range []*delivery{first, second} {
			if err := one.deliver(ctx, i, min(i+turn, len(orders)),
				inbox.OutcomeApplied); err != nil {
				return d, err
			}
		}
		first, second = second, first
	}
	d.with, d.without = with.took, without.took
	err = with.deliver(ctx, 0, len(orders), inbox.OutcomeDuplicate)
	d.again = with.took - d.with
	slog.Info("delivered", "events", len(orders), "with inbox", d.with, "without", d.without,
		"again", d.again)
	return d, errors.Join(err, expectApplied(ctx, db, 2*len(orders)))
}

// delivery is a broker with its consumers.
type delivery struct {
	handler  inbox.Handler
	messages []outbox.Message
	took     time.Duration // so far
}

// newDelivery returns the orders as new messages, in an order that is random within the delivery
// window.
func newDelivery(
	ctx context.Context, handler inbox.Handler, orders []rival.Order,
) (*delivery, error) {
	rows, err := rival.Encode(ctx, orders)
	if err != nil {
		return nil, err
	}
	messages := make([]outbox.Message, len(orders))
	for i, r := range rows {
		messages[i] = outbox.Message{
			ID: r.ID, Type: r.Type, Version: r.Version, Source: events.Service, Topic: r.Topic,
			Key: r.Key, Payload: r.Payload, ContentType: r.ContentType, CreatedAt: time.Now(),
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for window := range slices.Chunk(messages, deliveryWindow) {
		r.Shuffle(len(window), func(i, j int) { window[i], window[j] = window[j], window[i] })
	}
	return &delivery{handler: handler, messages: messages}, nil
}

// deliver has the consumers handle the messages from first until before end, and returns an error
// if one has another outcome.
func (d *delivery) deliver(ctx context.Context, first, end int, outcome inbox.Outcome) error {
	group, ctx := errgroup.WithContext(ctx)
	var taken atomic.Int64
	began := time.Now()
	for range consumers {
		group.Go(func() error {
			for i := first + int(taken.Add(1)) - 1; i < end; i = first + int(taken.Add(1)) - 1 {
				if got, err := d.handler.Handle(ctx, &d.messages[i]); err != nil || got != outcome {
					return errors.Join(fmt.Errorf("bench: a delivery was %v, want %v", got,
						outcome), err)
				}
			}
			return nil
		})
	}
	err := group.Wait()
	d.took += time.Since(began)
	return err
}

// expectApplied returns an error unless the consumer has applied that many events.
func expectApplied(ctx context.Context, db *lab.Database, want int) error {
	var got int
	if err := db.QueryRow(ctx,
		"SELECT coalesce(sum(times), 0) FROM placed").Scan(&got); err != nil {
		return fmt.Errorf("bench: count what was applied: %w", err)
	}
	if got != want {
		return fmt.Errorf("bench: %d events were applied, want %d", got, want)
	}
	return nil
}
