package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/examples/orders"
	"github.com/outboxgen/outboxgen/examples/orders/internal/events"
)

// placeOrder places an order of one mug.
func (w *world) placeOrder(ctx context.Context) error {
	return pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		return w.shop.PlaceOrder(ctx, tx, oneMug())
	})
}

func oneMug() orders.Order {
	return orders.Order{
		ID: uuid.New(), CustomerID: uuid.New(),
		Email: "customer@shop.example", Channel: events.ChannelWeb,
		Lines: []events.OrderLine{{
			Sku: "mug", Quantity: 1, Price: events.Money{Amount: 990, Currency: "EUR"},
		}},
	}
}

// arrive adds to a state what n orders lead to in the end: for each, the order's event, the
// reservation's event, and one mug less.
func arrive(n int) func(*state) {
	return func(s *state) {
		s.Mugs -= n
		s.Inbox += n
		s.Outbox = 0
		s.Sent += 2 * n
		s.OrderMessages += n
		s.StockMessages += n
	}
}

func brokerUp(ctx context.Context, w *world) error {
	w.say("One transaction writes the order and its event.")
	if err := w.placeOrder(ctx); err != nil {
		return err
	}
	if err := w.reach(ctx, "order and event are there", func(s *state) {
		s.Orders++
		s.Outbox++
	}); err != nil {
		return err
	}
	w.say("The relay starts and publishes the event. The inventory starts and reserves a mug; " +
		"that is an event too.")
	if err := errors.Join(w.startRelay(), w.startInventory()); err != nil {
		return err
	}
	if err := w.reach(ctx, "event published, stock reduced", arrive(1)); err != nil {
		return err
	}
	w.proved("the event arrived, and the stock is reduced")
	return nil
}

func brokerDown(ctx context.Context, w *world) error {
	w.say("NATS is stopped. The shop goes on.")
	w.nats.Stop()
	w.brokerIsDown = true
	before := w.now
	const n = 3
	for range n {
		if err := w.placeOrder(ctx); err != nil {
			return err
		}
	}
	err := w.reach(ctx, "three orders, three events waiting", func(s *state) {
		s.Orders += n
		s.Outbox += n
		s.OrderMessages, s.StockMessages, s.Unhandled = unknown, unknown, unknown
	})
	if err != nil {
		return err
	}
	w.say("NATS is started again.")
	if err := w.nats.Restart(); err != nil {
		return err
	}
	w.brokerIsDown = false
	err = w.reach(ctx, "the events have arrived", func(s *state) {
		s.OrderMessages, s.StockMessages = before.OrderMessages, before.StockMessages
		s.Unhandled = before.Unhandled
		arrive(n)(s)
	})
	if err != nil {
		return err
	}
	w.proved("no order was refused, and no event was lost")
	return nil
}

func rolledBack(ctx context.Context, w *world) error {
	w.say("The order and its event are written. Then the payment is declined, and the " +
		"transaction rolled back.")
	order, declined := oneMug(), errors.New("payment declined")
	err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		return errors.Join(w.shop.PlaceOrder(ctx, tx, order), declined)
	})
	if !errors.Is(err, declined) {
		return fmt.Errorf("got error %w, want %w", err, declined)
	}
	if err := w.reach(ctx, "nothing is there", func(*state) {}); err != nil {
		return err
	}
	w.say("The next order goes through.")
	if err := w.placeOrder(ctx); err != nil {
		return err
	}
	if err := w.reach(ctx, "its event has arrived", func(s *state) {
		s.Orders++
		arrive(1)(s)
	}); err != nil {
		return err
	}
	var found int
	err = w.pool.QueryRow(ctx, "SELECT count(*) FROM outbox_status WHERE key = $1",
		order.ID.String()).Scan(&found)
	if err != nil || found != 0 {
		return fmt.Errorf("got %d events of the rolled back order and error %w, want none", found,
			err)
	}
	w.proved("an order that was rolled back has no event")
	return nil
}
