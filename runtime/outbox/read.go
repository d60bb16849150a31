package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/outboxgen/outboxgen/runtime/backoff"
	"github.com/outboxgen/outboxgen/runtime/outbox/internal/ledger"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

const dueInterval = 100 * time.Millisecond

// read reads until ctx ends, or (once) until there is nothing to do or a read fails. It reads again at once while the outbox offers more
// than a read takes, and waits otherwise.
func (s *session) read(ctx context.Context, rings <-chan struct{}, once bool) error {
	bell, stop := s.store.Doorbell().Wait()
	defer stop()
	p := pause{poll: pollMin, most: s.config.PollInterval, bell: bell, rings: rings, progress: s.ledger.Progress()}
	for ctx.Err() == nil {
		found, err := s.cycle(ctx)
		switch {
		case err != nil && ctx.Err() == nil && once:
			return err
		case err != nil:
			s.health.report(ctx, reading, err)
			sleep(ctx, max(pollMin, s.config.PollInterval/4))
			continue
		case found == something:
			p.found()
			if s.ledger.Busy() {
				continue
			}
		case found == nothing && p.again():
			continue
		case once && s.ledger.Idle():
			return nil
		}
		p.wait(ctx)
	}
	return nil
}

// finding is what a cycle came to.
type finding int

const (
	notLooked finding = iota // there was no room, or no shard to read
	nothing
	something
)

// cycle reads once what is new, what is due and what is held no longer. After a cycle that failed,
// the next one asks for less. One that takes longer than the lease has lost its connection.
func (s *session) cycle(ctx context.Context) (found finding, err error) {
	err = bounded(ctx, s.store, s.config.Lease, func(ctx context.Context) error {
		if err := s.check(ctx); err != nil {
			return err
		}
		p, ok := s.ledger.Plan(time.Now())
		if !ok {
			return nil
		}
		found, err = s.readAll(ctx, s.reads.Plan(p))
		s.reads.Ended(err)
		return err
	})
	if err != nil {
		return notLooked, err
	}
	if found != notLooked {
		s.health.report(ctx, reading, nil)
	}
	return found, nil
}

func (s *session) readAll(ctx context.Context, p ledger.Plan) (finding, error) {
	found := nothing
	for _, step := range []func(context.Context, ledger.Plan) (int, error){s.readNew, s.readDue, s.readResumed} {
		n, err := step(ctx, p)
		if err != nil {
			return notLooked, err
		}
		if n > 0 {
			found = something
		}
	}
	return found, nil
}

func (s *session) readNew(ctx context.Context, p ledger.Plan) (int, error) {
	read, err := s.store.Read(ctx,
		storage.ReadParams{Shards: p.Reads, Known: p.Known, MaxBytes: p.Bytes})
	if err != nil {
		return 0, err
	}
	late, err := s.advanceWatermark(ctx, read.Items)
	if err != nil {
		return 0, err
	}
	if late {
		return 1, nil // to be read again, from further back
	}
	charged, err := s.charge(ctx, read.Items, false)
	if err != nil {
		return 0, err
	}
	s.ledger.Accept(p, read.Items, charged)
	return len(read.Items), nil
}

// advanceWatermark asks for the watermark, if what was read lies above it. If late is true, the read
// must not be used: it may hold successors of events that it lacks.
func (s *session) advanceWatermark(
	ctx context.Context, read []storage.Item,
) (late bool, err error) {
	seen, wanted := s.ledger.WatermarkWanted(read)
	if !wanted {
		return false, nil
	}
	result, err := s.store.Watermark(ctx,
		storage.WatermarkParams{Seen: seen, State: s.watermarkState})
	if err != nil {
		return false, err
	}
	s.watermarkState = result.State
	s.ledger.SetWatermark(result)
	return result.Late, nil
}

func (s *session) readDue(ctx context.Context, p ledger.Plan) (int, error) {
	if time.Since(s.dueRead) < min(dueInterval, s.config.PollInterval) {
		return 0, nil
	}
	s.dueRead = time.Now()
	read, err := s.store.ReadDue(ctx,
		storage.ReadDueParams{Shards: p.Due, Known: s.ledger.KnownDue(p.At)})
	if err != nil {
		return 0, err
	}
	charged, err := s.charge(ctx, read.Items, false)
	if err != nil {
		return 0, err
	}
	return s.ledger.AcceptDue(p, read.Items, charged), nil
}

func (s *session) readResumed(ctx context.Context, p ledger.Plan) (int, error) {
	s.ledger.RecheckHeads(time.Now())
	r := s.reads.Resumption(s.ledger.Resumable())
	if len(r.Keys) == 0 {
		return 0, nil
	}
	read, err := s.store.ReadKeys(ctx, storage.ReadKeysParams{Keys: r.Keys})
	if err != nil {
		return 0, err
	}
	charged, err := s.charge(ctx, read.Items, true)
	if err != nil {
		return 0, err
	}
	s.ledger.AcceptResumed(r, read.Items, charged, p.At)
	return len(r.Keys), nil
}

// charge counts an attempt of those items that may have ended another relay, and returns which
// these are.
func (s *session) charge(
	ctx context.Context, items []storage.Item, resumed bool,
) (map[int64]bool, error) {
	suspects := s.ledger.Suspects(items, resumed)
	if len(suspects) == 0 {
		return nil, nil
	}
	charged := make(map[int64]bool, len(suspects))
	for _, i := range suspects {
		charged[i.Seq] = true
	}
	return charged, s.begin(ctx, suspects...)
}

// begin counts an attempt before it is made, so that one which ends this process has been counted.
func (s *session) begin(ctx context.Context, items ...*storage.Item) error {
	p := storage.SettleParams{
		Relay: s.id, Owned: s.ledger.Owned(), Retries: make([]storage.Retry, len(items)),
	}
	for i, m := range items {
		p.Retries[i] = storage.Retry{
			Position: m.Position, Attempts: ledger.OneMore(m.Attempts), Interrupted: true,
			Delay: backoff.Delay(int(ledger.OneMore(m.Attempts)), s.config.MinRetryDelay, s.config.MaxRetryDelay),
			Error: fmt.Sprintf("attempt %d began and has not ended", ledger.OneMore(m.Attempts)),
		}
	}
	var changed storage.SettleResult
	err := bounded(ctx, s.store, s.config.Lease/3, func(ctx context.Context) (err error) {
		changed, err = s.store.Settle(ctx, p)
		return err
	})
	switch {
	case err != nil:
		return err
	case changed.Retries < len(items):
		s.doubt.Store(true)
		return fmt.Errorf("outbox: of %d attempts %d could be charged", len(items), changed.Retries)
	}
	for _, m := range items {
		m.Attempts = ledger.OneMore(m.Attempts)
	}
	return nil
}
