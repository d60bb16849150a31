package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// state has what can be counted from outside.
type state struct {
	Orders int // in the table
	Mugs   int // in stock
	Inbox  int // events that the inventory has applied

	Outbox int // events that are pending
	Sent   int // published events that the relay has settled

	OrderMessages int // in the broker's stream of shop.orders
	StockMessages int // in that of shop.stock
	Unhandled     int // order messages that the inventory has not acknowledged
}

const (
	allMugs = 100
	unknown = -1 // the broker's figures, while it is down
)

func (w *world) observe(ctx context.Context) (s state, err error) {
	err = w.pool.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM orders), (SELECT available FROM stock WHERE sku = 'mug'),
		       (SELECT count(*) FROM inbox), (SELECT count(*) FROM outbox),
		       (SELECT count(*) FROM outbox_sent)`,
	).Scan(&s.Orders, &s.Mugs, &s.Inbox, &s.Outbox, &s.Sent)
	if err != nil {
		return s, fmt.Errorf("read the database: %w", err)
	}
	if w.brokerIsDown {
		s.OrderMessages, s.StockMessages, s.Unhandled = unknown, unknown, unknown
		return s, nil
	}
	for stream, count := range map[string]*int{
		orderStream: &s.OrderMessages, stockStream: &s.StockMessages,
	} {
		if *count, err = w.messages(ctx, stream); err != nil {
			return s, fmt.Errorf("read the broker: %w", err)
		}
	}
	consumer, err := w.js.Consumer(ctx, orderStream, "inventory")
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		s.Unhandled = s.OrderMessages
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("read the broker: %w", err)
	}
	info := consumer.CachedInfo()
	s.Unhandled = int(info.NumPending) + info.NumAckPending
	return s, nil
}

// messages returns how many messages a stream holds.
func (w *world) messages(ctx context.Context, name string) (int, error) {
	stream, err := w.js.Stream(ctx, name)
	if err != nil {
		return 0, err
	}
	return int(stream.CachedInfo().State.Msgs), nil
}

// reach waits until the state is that of the last step, changed as change says, and prints it.
func (w *world) reach(ctx context.Context, step string, change func(*state)) error {
	want, got := w.now, state{}
	change(&want)
	err := until(ctx, step, func() (done bool, err error) {
		got, err = w.observe(ctx)
		return err == nil && got == want, err
	})
	if err != nil {
		return fmt.Errorf("%w\n  got  %+v\n  want %+v", err, got, want)
	}
	w.now = want
	w.row(step, want)
	return nil
}

const (
	patience = 3 * time.Minute
	interval = 20 * time.Millisecond
)

// until waits until a condition is met. An error counts as not yet met.
func until(ctx context.Context, what string, met func() (bool, error)) error {
	deadline := time.After(patience)
	for {
		done, err := met()
		if done && err == nil {
			return nil
		}
		select {
		case <-time.After(interval):
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			return errors.Join(fmt.Errorf("%q has not come about within %v", what, patience), err)
		}
	}
}
