package failures_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// backlog inserts n pending events with payloads of about size bytes into all shards, and has the
// server gather statistics.
func (w *world) backlog(n, size int) {
	w.Helper()
	w.insert(n, size)
	w.exec(`ANALYZE outbox`)
}

// insert is backlog without the statistics.
func (w *world) insert(n, size int) {
	w.Helper()
	w.exec(`INSERT INTO outbox (shard, id, type, version, topic, key, payload, content_type)
		SELECT i % 16, gen_random_uuid(), 'thing.happened', 1, 'things', 'key ' || i % 480,
			convert_to('{"entity":"' || repeat('x', $2::integer) || '","n":' || i || '}', 'UTF8'),
			'application/json'
		FROM generate_series(1, $1::integer) AS i`, n, size)
}

// watched is a store that records what the relay asks for and how much it has in memory.
type watched struct {
	*events.Store
	events, bytes         atomic.Int64 // read, and not settled yet
	mostEvents, mostBytes int64

	mu    sync.Mutex
	sizes map[storage.Position]int64
	last  storage.ReadParams
}

func watch(store *events.Store) *watched {
	return &watched{Store: store, sizes: map[storage.Position]int64{}}
}

func (s *watched) Read(ctx context.Context, p storage.ReadParams) (storage.ReadResult, error) {
	r, err := s.Store.Read(ctx, p)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = p
	for i := range r.Items {
		at, size := r.Items[i].Position, int64(len(r.Items[i].Payload))
		if s.sizes[at] == 0 {
			s.sizes[at] = size
			s.mostEvents = max(s.mostEvents, s.events.Add(1))
			s.mostBytes = max(s.mostBytes, s.bytes.Add(size))
		}
	}
	return r, err
}

func (s *watched) Settle(
	ctx context.Context, p storage.SettleParams,
) (storage.SettleResult, error) {
	r, err := s.Store.Settle(ctx, p)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range p.Published {
		s.events.Add(-1)
		s.bytes.Add(-s.sizes[at])
	}
	return r, err
}

func (s *watched) lastRead() storage.ReadParams {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// TestABacklogIsReadInBoundedPieces drains a backlog that would take 800 MB if it were read at
// once.
func TestABacklogIsReadInBoundedPieces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const pending, payload = 200_000, 4000
	w.backlog(pending, payload)
	store := watch(w.store)
	c := quick()
	c.MaxInFlight, c.MaxInFlightBytes = 1000, 1<<20
	var published atomic.Int64
	relay, stop := w.run(store, publisherFunc(func(context.Context, *outbox.Message) error {
		published.Add(1)
		return nil
	}), c)
	heap := uint64(0)
	w.eventually("a good part is published", func() bool {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		heap = max(heap, m.HeapAlloc)
		if n := relay.Stats().InFlight; n > c.MaxInFlight {
			t.Fatalf("%d events in flight, want at most %d", n, c.MaxInFlight)
		}
		return published.Load() > pending/10
	})
	stop()
	// Each of the 16 shards may return one event that exceeds its bound.
	if limit := int64(c.MaxInFlightBytes + 16*(payload+50)); store.mostBytes > limit ||
		store.mostBytes < limit/4 {
		t.Errorf("at most %d bytes were in memory, want %d at most, and not much less",
			store.mostBytes, limit)
	}
	if store.mostEvents > int64(c.MaxInFlight) {
		t.Errorf("at most %d events were in memory, want %d at most", store.mostEvents,
			c.MaxInFlight)
	}
	if heap > 200<<20 {
		t.Errorf("the heap grew to %d MB", heap>>20)
	}
}

// TestAnOldSnapshotDoesNotMakeReadsSlow drains events while an old snapshot keeps the server from
// removing deleted rows, and then checks what a read of the relay costs the server.
func TestAnOldSnapshotDoesNotMakeReadsSlow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backlog(20_000, 100)
	dump, err := w.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	w.must(err)
	defer func() { _ = dump.Rollback(context.WithoutCancel(t.Context())) }()
	// The session even has a transaction id.
	_, err = dump.Exec(t.Context(), `CREATE TABLE forgotten ()`)
	w.must(err)

	store := watch(w.store)
	w.run(store, publisherFunc(func(context.Context, *outbox.Message) error {
		return nil
	}), quick())
	w.eventually("all is published", func() bool { return w.pending() == 0 })
	fromStart := w.readCost(startOf(store.lastRead()))
	cost := 0
	w.eventually("reads begin where the last ended", func() bool {
		cost = w.readCost(store.lastRead())
		return cost*10 < fromStart
	})
	t.Logf("a read touches %d pages, and %d from the start", cost, fromStart)
}

// startOf returns the parameters of a read of the same shards from their beginning.
func startOf(p storage.ReadParams) storage.ReadParams {
	p.Shards, p.Known = slices.Clone(p.Shards), nil
	for i := range p.Shards {
		p.Shards[i].After = 0
	}
	return p
}
