package failures_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// counting is a store that counts what the relay reads.
type counting struct {
	storage.Store
	rows, keys atomic.Int64
	charged    atomic.Int64 // attempts charged to the events before they were read
}

func (s *counting) count(items []storage.Item) {
	s.rows.Add(int64(len(items)))
	for i := range items {
		s.charged.Add(int64(items[i].Attempts))
	}
}

func (s *counting) Read(ctx context.Context, p storage.ReadParams) (storage.ReadResult, error) {
	r, err := s.Store.Read(ctx, p)
	s.count(r.Items)
	return r, err
}

func (s *counting) ReadDue(
	ctx context.Context, p storage.ReadDueParams,
) (storage.ReadDueResult, error) {
	r, err := s.Store.ReadDue(ctx, p)
	s.count(r.Items)
	return r, err
}

func (s *counting) ReadKeys(
	ctx context.Context, p storage.ReadKeysParams,
) (storage.ReadKeysResult, error) {
	s.keys.Add(int64(len(p.Keys)))
	r, err := s.Store.ReadKeys(ctx, p)
	s.count(r.Items)
	return r, err
}

// TestManyHeldKeysGoOnAsABacklog has the broker refuse the first event of many keys once, and then
// counts what the relay reads. It may read each event a few times, but hardly any key by itself,
// since that takes a scan of all that is pending in the shard.
func TestManyHeldKeysGoOnAsABacklog(t *testing.T) {
	t.Parallel()
	const keys, each = 8000, 5
	for name, backoff := range map[string]time.Duration{
		"at once": 50 * time.Millisecond, "one after the other": 6 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.exec(`INSERT INTO outbox (shard, id, type, version, topic, key, payload, content_type)
				SELECT i % $1::integer % 16, gen_random_uuid(), 'thing.happened', 1, 'things',
				'key ' || i % $1::integer,
				convert_to('{"n":' || i || '}', 'UTF8'), 'application/json'
				FROM generate_series(1, $2::integer) AS i`, keys, keys*each)
			w.exec(`ANALYZE outbox`)
			store := &counting{Store: w.store}
			recording := &outboxtest.RecordingPublisher{}
			var up atomic.Bool
			c := quick()
			c.MinRetryDelay, c.MaxRetryDelay, c.MaxAttempts = backoff, backoff, outbox.Unlimited
			relay, _ := w.run(store, publisherFunc(func(ctx context.Context,
				m *outbox.Message) error {
				if !up.Load() {
					return errors.New("503")
				}
				return recording.Publish(ctx, m)
			}), c)
			w.eventually("every key is held", func() bool { return relay.Stats().Held == keys })
			rows, byKey := store.rows.Load(), store.keys.Load()
			up.Store(true)
			messages := w.published(recording, keys*each)
			w.once(messages, keys*each)
			last := map[string]int64{}
			for i := range messages {
				key, n := messages[i].Key, number(&messages[i])
				if n < last[key] {
					t.Fatalf("event %d of %s was published behind %d", n, key, last[key])
				}
				last[key] = n
			}
			rows, byKey = store.rows.Load()-rows, store.keys.Load()-byKey
			t.Logf("%d events were read, and %d keys by themselves", rows, byKey)
			if rows > 20*keys*each {
				t.Errorf("%d events were read to publish %d", rows, keys*each)
			}
			if byKey > keys*3/4 {
				t.Errorf("%d of %d keys were read by themselves", byKey, keys)
			}
		})
	}
}
