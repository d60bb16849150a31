package inbox_test

import (
	"context"
	"errors"
	"sync"

	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

type claimKey struct {
	consumer string
	event    outbox.ID
}

// memStore is an inbox.Store in memory, beside it the effects of handlers, which commit and roll
// back with it.
type memStore struct {
	inbox.BaseStore[*memTx]
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
	return &memStore{handled: map[claimKey]bool{}, locks: map[claimKey]*memTx{},
		pending: map[outbox.ID]int{}}
}

type memTx struct {
	claims       []claimKey
	effects      []string
	redispatched []outbox.ID
}

func (tx *memTx) effect(s string) { tx.effects = append(tx.effects, s) }

func (s *memStore) InTx(
	ctx context.Context, p inbox.InTxParams[*memTx],
) (inbox.InTxResult, error) {
	tx := &memTx{}
	defer s.unlock(tx)
	if err := errors.Join(p.Run(tx), ctx.Err(), s.commitErr); err != nil {
		return inbox.InTxResult{}, err
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
	return inbox.InTxResult{}, nil
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

func (s *memStore) Claim(
	_ context.Context, tx *memTx, p inbox.ClaimParams,
) (inbox.ClaimResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := claimKey{p.Consumer, p.Event}
	if s.locks[key] != nil {
		return inbox.ClaimResult{Claim: inbox.ClaimInFlight}, nil
	}
	s.locks[key] = tx
	if s.handled[key] {
		return inbox.ClaimResult{Claim: inbox.ClaimDuplicate}, nil
	}
	tx.claims = append(tx.claims, key)
	return inbox.ClaimResult{Claim: inbox.ClaimFresh}, nil
}

func (s *memStore) Handled(
	_ context.Context, p inbox.HandledParams,
) (inbox.HandledResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return inbox.HandledResult{Handled: s.handled[claimKey{p.Consumer, p.Event}]}, nil
}

func (s *memStore) Redispatch(
	_ context.Context, tx *memTx, p inbox.RedispatchParams,
) (inbox.RedispatchResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx.redispatched = append(tx.redispatched, p.Causation)
	return inbox.RedispatchResult{Due: s.pending[p.Causation]}, nil
}

func (s *memStore) applied() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.effects...)
}
