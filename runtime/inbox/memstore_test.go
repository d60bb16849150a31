package inbox_test

import (
	"context"
	"sync"

	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

type claimKey struct {
	consumer string
	event    outbox.ID
}

// memStore is an inbox.Store in memory, beside it the effects of handlers, which commit and roll back with it.
type memStore struct {
	bell      storage.Doorbell
	commitErr error // what a commit fails with; nothing is kept then

	mu      sync.Mutex
	handled map[claimKey]bool
	locks   map[claimKey]*memTx
	effects []string
	pending map[outbox.ID]int // events that wait, by what caused them
}

// Doorbell implements inbox.Store.
func (s *memStore) Doorbell() *storage.Doorbell { return &s.bell }

func newMemStore() *memStore {
	return &memStore{handled: map[claimKey]bool{}, locks: map[claimKey]*memTx{}, pending: map[outbox.ID]int{}}
}

type memTx struct {
	claims       []claimKey
	effects      []string
	redispatched []outbox.ID
}

func (tx *memTx) effect(s string) { tx.effects = append(tx.effects, s) }

func (s *memStore) InTx(ctx context.Context, f func(tx *memTx) error) error {
	tx := &memTx{}
	defer s.unlock(tx)
	if err := f(tx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.commitErr != nil {
		return s.commitErr
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range tx.claims {
		s.handled[key] = true
	}
	for _, cause := range tx.redispatched {
		delete(s.pending, cause)
	}
	s.effects = append(s.effects, tx.effects...)
	return nil
}

func (s *memStore) unlock(tx *memTx) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, holder := range s.locks {
		if holder == tx {
			delete(s.locks, key)
		}
	}
}

func (s *memStore) Claim(_ context.Context, tx *memTx, consumer string, event outbox.ID) (inbox.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := claimKey{consumer, event}
	if s.locks[key] != nil {
		return inbox.InFlight, nil
	}
	s.locks[key] = tx
	if s.handled[key] {
		return inbox.Duplicate, nil
	}
	tx.claims = append(tx.claims, key)
	return inbox.Fresh, nil
}

// Handled implements inbox.Recaller.
func (s *memStore) Handled(_ context.Context, consumer string, event outbox.ID) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.handled[claimKey{consumer, event}], nil
}

func (s *memStore) Redispatch(_ context.Context, tx *memTx, causation outbox.ID) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx.redispatched = append(tx.redispatched, causation)
	return s.pending[causation], nil
}

func (s *memStore) applied() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.effects...)
}
