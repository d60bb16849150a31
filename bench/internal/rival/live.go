package rival

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench/events"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// Enqueue implements Enqueuer.
func (Relay) Enqueue(ctx context.Context, tx pgx.Tx, o Order) error {
	_, err := service.EnqueueOrderPlacedV1(ctx, tx, o)
	return err
}

// Queue adds the event to a batch, which is to be sent in a transaction.
func (Relay) Queue(ctx context.Context, batch *pgx.Batch, o Order) error {
	_, err := service.QueueOrderPlacedV1(ctx, batch, o)
	return err
}

// Follow implements Follower: the relay runs in the process that enqueues. Retain makes no
// difference to it.
func (r Relay) Follow(
	ctx context.Context, db *lab.Database, ready func(), published func(uuid.UUID),
) error {
	store := &watchedStore{Store: events.NewStore(db.Pool), bell: service.Doorbell()}
	return r.follow(ctx, store, ready, published)
}

// Elsewhere is the relay as if it ran in another process than the service: enqueues in this process
// do not wake it, and it learns of them only by the notifications of outbox.ForwardWakeups, which a
// service without a relay runs.
type Elsewhere struct{ Relay }

// Name implements Follower.
func (Elsewhere) Name() string { return "outboxgen, told by NOTIFY alone" }

// Follow implements Follower.
func (e Elsewhere) Follow(
	ctx context.Context, db *lab.Database, ready func(), published func(uuid.UUID),
) error {
	forwarding, stop := context.WithCancel(ctx)
	var service sync.WaitGroup
	defer service.Wait()
	defer stop()
	service.Go(func() { outbox.ForwardWakeups(forwarding, Store(db)) })
	unrung := &watchedStore{Store: events.NewStore(db.Pool), bell: new(storage.Doorbell)}
	return e.follow(ctx, unrung, ready, published)
}

func (r Relay) follow(
	ctx context.Context, store *watchedStore, ready func(), published func(uuid.UUID),
) error {
	store.watch(ready)
	relay, err := outbox.NewRelay(store, publisherFunc(published), Silent(r.Config))
	if err != nil {
		return err
	}
	return relay.Run(ctx)
}

// watchedStore calls ready once a relay both reads and listens.
type watchedStore struct {
	*events.Store
	bell               *storage.Doorbell
	reading, listening func()
}

func (s *watchedStore) watch(ready func()) {
	var missing atomic.Int32
	missing.Store(2)
	begun := func() {
		if missing.Add(-1) == 0 {
			ready()
		}
	}
	s.reading, s.listening = sync.OnceFunc(begun), sync.OnceFunc(begun)
}

// Doorbell implements storage.Store.
func (s *watchedStore) Doorbell() *storage.Doorbell { return s.bell }

// Read implements storage.Store.
func (s *watchedStore) Read(
	ctx context.Context, p storage.ReadParams,
) (storage.ReadResult, error) {
	s.reading()
	return s.Store.Read(ctx, p)
}

// Listen implements storage.Store.
func (s *watchedStore) Listen(
	ctx context.Context, p storage.ListenParams,
) (storage.ListenResult, error) {
	ready := p.Ready
	p.Ready = func() { ready(); s.listening() }
	return s.Store.Listen(ctx, p)
}

// publisherFunc is a publisher that only reports the order of each event.
type publisherFunc func(uuid.UUID)

// Publish implements outbox.Publisher.
func (f publisherFunc) Publish(_ context.Context, m *outbox.Message) error {
	id, err := uuid.Parse(m.Key)
	if err != nil {
		return outbox.Permanent(fmt.Errorf("bench: the key is not an order's id: %w", err))
	}
	f(id)
	return nil
}
