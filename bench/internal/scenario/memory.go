package scenario

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench/events"
	"github.com/outboxgen/outboxgen/bench/internal/child"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/report"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

const mebibyte = 1 << 20

// memory measures a relay with the default configuration, alone in its process, which drains many
// events, and one that drains large ones.
func memory(ctx context.Context, l *lab.Lab) (report.Result, error) {
	many, err := drainAlone(ctx, l, rival.Relay{}, rival.Uniform(lab.Pick(l, 1_000_000, 200_000)))
	if err != nil {
		return report.Result{}, fmt.Errorf("orders: %w", err)
	}
	large, err := drainAlone(ctx, l, documents{}, rival.Uniform(20_000))
	if err != nil {
		return report.Result{}, fmt.Errorf("documents: %w", err)
	}
	if many.Peak == 0 {
		return report.Result{}, errors.New("this system does not say how much memory a process " +
			"had at most")
	}
	return report.Result{Claims: []report.Claim{
		many.claim("events of about 300 B", report.AtMost(64)),
		large.claim("events of 10 kB", report.Bound{}),
	}}, nil
}

// solo is the result of a relay that was alone in its process.
type solo struct {
	child.Report
	events int
	took   time.Duration
}

func (s solo) claim(what string, bound report.Bound) report.Claim {
	return report.Claim{
		What: fmt.Sprintf("peak resident memory of a relay that drains %s %s",
			report.Number(float64(s.events)), what),
		Values: measure.Series{float64(s.Peak) / mebibyte}, Unit: "MiB", Bound: bound,
		Detail: fmt.Sprintf("heap %d MiB at the end, %s B allocated an event; %s events/s",
			s.Heap/mebibyte, report.Number(float64(s.Allocated)/float64(s.events)),
			report.Number(measure.Rate(s.events, s.took))),
	}
}

// drainAlone measures a relay that drains a contestant's backlog in a process of its own.
func drainAlone(
	ctx context.Context, l *lab.Lab, c rival.Contestant, w rival.Workload,
) (s solo, err error) {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	db, err := backlog(ctx, l, c, w)
	if err != nil {
		return s, err
	}
	defer db.Drop()
	began := time.Now()
	reports, err := child.Run(ctx, 1, db.URL, outbox.Config{}, func(f *child.Fleet) error {
		err := f.Await(ctx, settled(w.Events))
		s.took = time.Since(began)
		return err
	})
	if err != nil {
		return s, err
	}
	s.Report, s.events = reports[0], w.Events
	if len(s.IDs) != s.events {
		return s, fmt.Errorf("bench: %d publishes of %d events", len(s.IDs), s.events)
	}
	slog.Info("drained", "events", s.events, "per second", int(measure.Rate(s.events, s.took)),
		"peak MiB", s.Peak/mebibyte)
	return s, expectEmpty(ctx, db)
}

// document is an event of about 10 kB.
type document struct {
	events.Event `json:"-"` // nil; it makes document an event of the catalogue

	ID   uuid.UUID `json:"document_id"`
	Text string    `json:"text"`
}

// EventType implements outbox.Event.
func (document) EventType() outbox.EventType {
	return outbox.EventType{
		Name: "document.stored", Version: 1, Topic: "shop.documents", Ordering: outbox.OrderingKey,
	}
}

// EventKey implements outbox.Event.
func (d document) EventKey() string { return d.ID.String() }

// documents is the relay with these events.
type documents struct{ rival.Relay }

// Fill implements rival.Contestant. It commits a document for each order, with a text that
// compression cannot make smaller.
func (documents) Fill(ctx context.Context, db *lab.Database, orders []rival.Order) error {
	random := rand.NewChaCha8([32]byte{})
	text := make([]byte, 7500) // 10,000 in base64
	return rival.InBatches(orders, func(batch []rival.Order) error {
		stored := make([]events.Event, len(batch))
		for i, o := range batch {
			_, _ = random.Read(text) // never fails
			stored[i] = document{ID: o.OrderID, Text: base64.StdEncoding.EncodeToString(text)}
		}
		return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
			_, err := rival.Store(db).Enqueue(ctx, tx, stored...)
			return err
		})
	})
}
