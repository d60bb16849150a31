package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// publishOrder begins the NATS operation by which the relay publishes an order's event.
const publishOrder = "PUB shop.orders "

func acknowledgementLost(ctx context.Context, w *world) error {
	w.say("The line between relay and broker breaks right behind the message, so that its " +
		"acknowledgement is lost.")
	sprung := w.relayLink.breakAfter(publishOrder)
	if err := w.placeOrder(ctx); err != nil {
		return err
	}
	if err := await(ctx, sprung, "the relay publishes"); err != nil {
		return err
	}
	// The reservation is applied, and its event waits because the line is broken.
	err := w.reach(ctx, "the broker has it, unacknowledged", func(s *state) {
		s.Orders++
		s.Mugs--
		s.Inbox++
		s.Outbox += 2
		s.OrderMessages++
	})
	if err != nil {
		return err
	}
	w.say("JetStream itself drops an id that it has seen within its duplicate window: by default " +
		"2 minutes, here")
	w.say("%v. The line is mended after that, to show what a break longer than the window leads "+
		"to.", duplicateWindow)
	if err := w.outlastDuplicateWindow(ctx); err != nil {
		return err
	}
	w.relayLink.mend()
	if err := w.reach(ctx, "published again", publishedAgain); err != nil {
		return err
	}
	return w.provePublishedTwice(ctx)
}

// publishedAgain adds to s what the second publish of an order's event leads to, if the event was
// applied after the first.
func publishedAgain(s *state) {
	s.Outbox -= 2
	s.Sent += 2
	s.OrderMessages++
	s.StockMessages++
}

// provePublishedTwice checks that both copies were handled and that one mug is gone, as w.now says.
func (w *world) provePublishedTwice(ctx context.Context) error {
	last, before, err := w.lastTwo(ctx)
	if err != nil {
		return err
	}
	id := last.Header.Get("ce-id")
	if id == "" || id != before.Header.Get("ce-id") {
		return fmt.Errorf("the last two messages are events %q and %q, want the same event twice",
			before.Header.Get("ce-id"), id)
	}
	w.proved("published twice with the same event id, %s apart, and applied once",
		seconds(last.Time.Sub(before.Time)))
	return nil
}

func (w *world) lastTwo(ctx context.Context) (last, before *jetstream.RawStreamMsg, err error) {
	stream, err := w.js.Stream(ctx, orderStream)
	if err != nil {
		return nil, nil, err
	}
	seq := stream.CachedInfo().State.LastSeq
	last, err = stream.GetMsg(ctx, seq)
	if err != nil {
		return nil, nil, err
	}
	before, err = stream.GetMsg(ctx, seq-1)
	return last, before, err
}

func (w *world) outlastDuplicateWindow(ctx context.Context) error {
	last, _, err := w.lastTwo(ctx)
	if err != nil {
		return err
	}
	return until(ctx, "the end of the duplicate window", func() (bool, error) {
		return time.Since(last.Time) > 3*duplicateWindow, nil
	})
}

func relayKilled(ctx context.Context, w *world) error {
	w.say("The relay publishes the event and is killed (SIGKILL) before it can record that.")
	published := w.now.OrderMessages
	sprung := w.relayLink.breakAfter(publishOrder)
	if err := w.placeOrder(ctx); err != nil {
		return err
	}
	if err := await(ctx, sprung, "the relay publishes"); err != nil {
		return err
	}
	err := until(ctx, "the broker has the message", func() (bool, error) {
		n, err := w.messages(ctx, orderStream)
		return n == published+1, err
	})
	if err != nil {
		return err
	}
	if err := w.relay.kill(); err != nil {
		return err
	}
	var leaseEnd time.Time
	if err := w.pool.QueryRow(ctx,
		"SELECT expires_at FROM outbox_relay").Scan(&leaseEnd); err != nil {
		return fmt.Errorf("the killed relay's lease: %w", err)
	}
	err = w.reach(ctx, "published, and not recorded", func(s *state) {
		s.Orders++
		s.Mugs--
		s.Inbox++
		s.Outbox += 2
		s.OrderMessages++
	})
	if err != nil {
		return err
	}
	return w.takeOver(ctx, leaseEnd)
}

// takeOver starts a relay in place of one that was killed.
func (w *world) takeOver(ctx context.Context, leaseEnd time.Time) error {
	w.say("Another relay starts at once. It gets the events when the lease of the killed one has " +
		"ended.")
	w.relayLink.mend()
	if err := w.startRelay(); err != nil {
		return err
	}
	if err := w.reach(ctx, "published again", publishedAgain); err != nil {
		return err
	}
	var early int
	err := w.pool.QueryRow(ctx, `SELECT count(*)
		FROM (SELECT sent_at FROM outbox_sent ORDER BY sent_at DESC LIMIT 2) AS sent
		WHERE sent_at < $1`, leaseEnd).Scan(&early)
	if err != nil || early > 0 {
		return fmt.Errorf("got %d events that were published before the lease's end and error "+
			"%w, want none", early, err)
	}
	return w.provePublishedTwice(ctx)
}

func consumerKilled(ctx context.Context, w *world) error {
	w.say("A trigger makes each stock.reserved look as if it had been refused for long: its next " +
		"attempt is far off.")
	if _, err := w.pool.Exec(ctx, putOff); err != nil {
		return err
	}
	w.say("The inventory reserves a mug, commits, and is killed before it can acknowledge the " +
		"order's event.")
	sprung := w.inventoryLink.breakAt("+ACK")
	if err := w.placeOrder(ctx); err != nil {
		return err
	}
	if err := await(ctx, sprung, "the inventory acknowledges"); err != nil {
		return err
	}
	if err := w.inventory.kill(); err != nil {
		return err
	}
	w.inventoryLink.mend()
	err := w.reach(ctx, "a mug is reserved, nobody is told", func(s *state) {
		s.Orders++
		s.Mugs--
		s.Inbox++
		s.Outbox++
		s.Sent++
		s.OrderMessages++
		s.Unhandled++
	})
	if err != nil {
		return err
	}
	if err := w.awaitPutOff(ctx); err != nil {
		return err
	}
	return w.redeliver(ctx)
}

// awaitPutOff waits for the reservation's event, and prints when it is due.
func (w *world) awaitPutOff(ctx context.Context) error {
	var wait time.Duration
	err := until(ctx, "stock.reserved is put off", func() (bool, error) {
		return true, w.pool.QueryRow(ctx, `SELECT available_at - now() FROM outbox
			WHERE type = 'stock.reserved' AND available_at > now() + interval '1 minute'`,
		).Scan(&wait)
	})
	if err != nil {
		return err
	}
	w.say("Its event stock.reserved is to be tried again in %.1f hours.", wait.Hours())
	return nil
}

// redeliver starts the inventory, so that the broker delivers again what was not acknowledged.
func (w *world) redeliver(ctx context.Context) error {
	w.say("The trigger is gone, and the inventory is back. It gets the order's event again: a " +
		"duplicate.")
	if _, err := w.pool.Exec(ctx, `DROP FUNCTION put_off CASCADE`); err != nil {
		return err
	}
	if err := w.startInventory(); err != nil {
		return err
	}
	err := w.reach(ctx, "stock.reserved sent, no mug more", func(s *state) {
		s.Outbox--
		s.Sent++
		s.StockMessages++
		s.Unhandled--
	})
	if err != nil {
		return err
	}
	w.proved("the duplicate reserved nothing, and sent on what the first delivery had not got out")
	return nil
}

// putOff makes the inventory's events wait in the outbox, as many refusals would.
const putOff = `
	CREATE FUNCTION put_off() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		NEW.attempts := 9;
		NEW.available_at := now() + interval '16 hours';
		RETURN NEW;
	END $$;
	CREATE TRIGGER put_off BEFORE INSERT ON outbox
		FOR EACH ROW WHEN (NEW.type = 'stock.reserved') EXECUTE FUNCTION put_off()`

// finish stops the processes in an orderly way, and checks the final state.
func (w *world) finish(ctx context.Context) error {
	if err := errors.Join(w.inventory.stop(ctx), w.relay.stop(ctx)); err != nil {
		return err
	}
	now, err := w.observe(ctx)
	switch {
	case err != nil:
		return err
	case now != w.now:
		return fmt.Errorf("got %+v, want %+v", now, w.now)
	case now.Orders+now.Mugs != allMugs || now.Inbox != now.Orders ||
		now.StockMessages != now.Orders:
		return fmt.Errorf("%+v: the orders, the mugs that are gone, and the reservations differ",
			now)
	}
	w.printf("\n%sIn the end:%s %d orders, whose events were published %d times, applied %d "+
		"times, and took %d mugs.",
		w.bold, w.normal, now.Orders, now.OrderMessages, now.Inbox, allMugs-now.Mugs)
	return nil
}

func await(ctx context.Context, sprung <-chan struct{}, what string) error {
	select {
	case <-sprung:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(patience):
		return fmt.Errorf("%q has not come about within %v", what, patience)
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
