package failures_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// TestAnEventThatIsResetByHandIsFound changes rows in every way in which an operator may, while the
// relay remembers them as waiting for hours. Each must be found within about a minute.
func TestAnEventThatIsResetByHandIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var down atomic.Bool
	down.Store(true)
	recording := &outboxtest.RecordingPublisher{}
	c := quick()
	c.MinRetryDelay, c.MaxRetryDelay = 100*time.Hour, 100*time.Hour
	relay, _ := w.run(w.store, publisherFunc(func(ctx context.Context, m *outbox.Message) error {
		if down.Load() && m.Key != "well" {
			return outboxtest.ErrRefused
		}
		return recording.Publish(ctx, m)
	}), c)
	w.enqueue(thing("head", 1), thing("head", 2), thing("deleted", 1), thing("deleted", 2))
	w.exec(`INSERT INTO outbox (shard, id, type, version, topic, key, payload, content_type)
		SELECT i, gen_random_uuid(), 'thing.happened', 1, 'things', '', '{}', 'application/json'
		FROM generate_series(1, 3) AS i`)
	w.eventually("all are put off", func() bool { return relay.Stats().Retried == 5 })
	for i := range 200 { // events that wait for a retry stand below those that are read from now on
		w.enqueue(thing("well", i))
	}
	w.eventually("it is passed", func() bool { return relay.Stats().Published == 200 })

	down.Store(false)
	w.exec(`UPDATE outbox SET attempts = 0, available_at = NULL
		WHERE key = 'head' OR shard = 1 AND key = ''`)
	w.exec(`UPDATE outbox SET attempts = 0, available_at = NULL, shard = 9
		WHERE shard = 2 AND key = ''`)
	w.exec(`WITH gone AS (DELETE FROM outbox WHERE shard = 3 AND key = '' RETURNING *)
		INSERT INTO outbox (shard, id, type, version, topic, key, payload, content_type, seq)
		OVERRIDING SYSTEM VALUE
		SELECT shard, id, type, version, topic, key, payload, content_type, seq FROM gone`)
	w.exec(`DELETE FROM outbox WHERE seq = (SELECT min(seq) FROM outbox WHERE key = 'deleted')`)

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	messages, err := recording.Wait(ctx, 206)
	if err != nil {
		t.Fatalf("%d of 206 events were published, and %d are pending: %v", len(messages),
			w.pending(), err)
	}
	w.once(messages, 206)
	w.eventually("all is settled", func() bool { return w.pending() == 0 })
	w.equal("keys held", relay.Stats().Held, 0)
}
