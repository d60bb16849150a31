package outbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/outboxgen/outboxgen/runtime/outbox/internal/ledger"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// session is a relay's work under one id. Four kinds of goroutine share its ledger: one renews the
// lease and takes shards, one reads, some publish, one settles.
type session struct {
	*core
	members membership
	reader  *reader
	workers worker
	settler *settler
}

// newSession returns a session that has not joined yet.
func newSession(
	store storage.Store, publisher Publisher, config Config, h *health, counters *counters,
) (*session, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	c := &core{
		id: id, store: store, publisher: publisher, config: config, health: h, counters: counters,
		ledger: ledger.New(ledgerConfig(config, publisher)),
	}
	members := membership{c}
	return &session{
		core: c, members: members, workers: worker{c},
		reader:  &reader{core: c, incarnation: incarnation{core: c}},
		settler: &settler{core: c, members: members},
	}, nil
}

// run works until ctx ends or the lease is lost. When ctx ends it drains: publishes that are under
// way may end within the DrainTimeout and are settled, and the shards are given back.
func (s *session) run(ctx context.Context, wakeups <-chan struct{}, once bool) error {
	// sessionCtx ends with the lease, or after draining.
	sessionCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	s.cancelSession = cancel
	readCtx, stopReading := context.WithCancel(sessionCtx)
	defer stopReading()
	defer context.AfterFunc(ctx, stopReading)()

	var members, workers, settler sync.WaitGroup
	lastSettle := make(chan struct{}) // closed when no more events come
	members.Go(func() { s.members.keep(sessionCtx, readCtx) })
	s.ledger.StaffWith(func() { workers.Go(func() { s.workers.run(sessionCtx) }) })
	settler.Go(func() { s.settler.run(sessionCtx, lastSettle) })
	failed := s.reader.run(readCtx, wakeups, once)

	s.ledger.Drain()
	defer time.AfterFunc(s.config.DrainTimeout, func() { cancel(errDrainTimeout) }).Stop()
	workers.Wait()
	close(lastSettle)
	settler.Wait()
	cause := context.Cause(sessionCtx)
	cancel(nil)
	members.Wait()
	if errors.Is(cause, storage.ErrLeaseLost) {
		s.counters.leasesLost.Add(1)
	}
	// Leave even if the lease was lost: a renewal may have succeeded in spite of its error.
	return errors.Join(cause, failed, s.members.leave(ctx))
}

var errDrainTimeout = errors.New("outbox: not drained in time")
