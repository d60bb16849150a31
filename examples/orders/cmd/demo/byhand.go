package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/outboxgen/outboxgen/examples/orders/internal/shopdb"
)

// The two ways to write to a database and a broker by hand. The process is killed between the two
// writes.
const (
	byHandCommand = "by-hand"
	commitFirst   = "commit-first"
	publishFirst  = "publish-first"

	halfWay = "half-way"
)

// writeByHand is what that process runs.
func writeByHand(ctx context.Context, way string) error {
	conn, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	nc, err := nats.Connect(os.Getenv("NATS_URL"))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	id := uuid.New()
	if err := insertOrder(ctx, tx, id); err != nil {
		return err
	}
	commit := func() error { return tx.Commit(ctx) }
	publish := func() error {
		_, err := js.Publish(ctx, "shop.orders", []byte(id.String()))
		return err
	}
	if way == publishFirst {
		return inTurn(ctx, publish, commit)
	}
	return inTurn(ctx, commit, publish)
}

// inTurn waits between the two writes, for the demo to kill the process. In production that moment
// is shorter, but comes more often.
func inTurn(ctx context.Context, first, second func() error) error {
	if err := first(); err != nil {
		return err
	}
	fmt.Println(halfWay)
	<-ctx.Done()
	return second()
}

func insertOrder(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	return shopdb.New(tx).InsertOrder(ctx, shopdb.InsertOrderParams{
		ID: id, CustomerID: uuid.New(), Email: "customer@shop.example",
		Total: 990, Currency: "EUR", PlacedAt: time.Now(),
	})
}

// dieHalfWay has a process write an order by hand, and kills it between its two writes.
func (w *world) dieHalfWay(ctx context.Context, way string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p, err := w.start(byHandCommand, w.nats.URL(), self, byHandCommand, way)
	if err != nil {
		return err
	}
	err = until(ctx, way, func() (bool, error) { return p.log.contains(halfWay), nil })
	if err != nil {
		return err
	}
	return p.kill()
}

func dualWrite(ctx context.Context, w *world) error {
	w.say("The order is committed, then its event is published. The process is killed in between.")
	if err := w.dieHalfWay(ctx, commitFirst); err != nil {
		return err
	}
	if err := w.reach(ctx, "an order without an event", func(s *state) { s.Orders++ }); err != nil {
		return err
	}
	w.say("The other way round: the event is published, then the order is committed. Killed in " +
		"between again.")
	if err := w.dieHalfWay(ctx, publishFirst); err != nil {
		return err
	}
	err := w.reach(ctx, "an event without an order", func(s *state) {
		s.OrderMessages++
		s.Unhandled++
	})
	if err != nil {
		return err
	}
	if err := w.checkOrderIsMissing(ctx); err != nil {
		return err
	}
	w.proved("one event is lost for good, and one announces an order that does not exist")
	return w.startAfresh(ctx)
}

// checkOrderIsMissing checks that the order of the only message is not in the database.
func (w *world) checkOrderIsMissing(ctx context.Context) error {
	stream, err := w.js.Stream(ctx, orderStream)
	if err != nil {
		return err
	}
	m, err := stream.GetLastMsgForSubject(ctx, "shop.orders")
	if err != nil {
		return err
	}
	var exists bool
	err = w.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM orders WHERE id = $1::uuid)",
		string(m.Data)).Scan(&exists)
	if err == nil && exists {
		err = fmt.Errorf("the order %s is there", m.Data)
	}
	return err
}

// startAfresh removes what was written by hand.
func (w *world) startAfresh(ctx context.Context) error {
	if _, err := w.pool.Exec(ctx, "TRUNCATE orders, order_lines"); err != nil {
		return err
	}
	stream, err := w.js.Stream(ctx, orderStream)
	if err != nil {
		return err
	}
	if err := stream.Purge(ctx); err != nil {
		return err
	}
	w.now = state{Mugs: allMugs}
	return nil
}
