package failures_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

func TestALeaseThatOnePublishOutlastsIsRefused(t *testing.T) {
	t.Parallel()
	_, err := outbox.NewRelay(outboxtest.NewMemStore(1), &outboxtest.RecordingPublisher{},
		outbox.Config{Lease: time.Second, PublishTimeout: time.Second})
	if err == nil {
		t.Error("a publish may take as long as the lease")
	}
}

// TestOwnershipChangesNoRowWhileARelayWorks shows that no dead versions of the few rows that every
// relay reads can pile up.
func TestOwnershipChangesNoRowWhileARelayWorks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	relay, _ := w.run(w.store, &outboxtest.RecordingPublisher{},
		outbox.Config{Lease: time.Hour, Logger: silent()})
	w.eventually("it owns all shards", func() bool { return relay.Stats().Shards == 16 })
	rows := func() string {
		return query[string](w,
			`SELECT string_agg(shard || ' ' || ctid::text, ' ' ORDER BY shard) FROM outbox_shard`) +
			query[string](w, `SELECT string_agg(ctid::text, ' ') FROM outbox_relay`)
	}
	before := rows()
	w.backlog(20_000, 100)
	w.eventually("all is settled", func() bool { return relay.Stats().Published == 20_000 })
	w.equal("where the rows of ownership are", rows(), before)
}

// TestRetriesAreSpreadOut has the broker refuse many events at the same moment.
func TestRetriesAreSpreadOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 200
	var list []events.Event
	for i := range n {
		list = append(list, thing(fmt.Sprint("key ", i), 1))
	}
	w.enqueue(list...)
	c := quick()
	c.MinRetryDelay, c.MaxRetryDelay = 10*time.Minute, time.Hour
	relay, _ := w.run(w.store, publisherFunc(func(context.Context, *outbox.Message) error {
		return outboxtest.ErrRefused
	}), c)
	// A few may have been refused a second time.
	w.eventually("all are put off", func() bool { return relay.Stats().Retried >= n })
	minutes := query[int](w,
		`SELECT count(DISTINCT floor(extract(epoch FROM available_at - now()) / 60)) FROM outbox`)
	if minutes < 8 {
		t.Errorf("the next attempts of %d events fall into %d of 10 minutes", n, minutes)
	}
}
