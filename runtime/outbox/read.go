package outbox

import (
	"context"
	"fmt"
	"time"
)

const dueInterval = 100 * time.Millisecond

// read reads until ctx ends, or (once) until there is nothing to do or a read fails. It reads again at once while the outbox offers more
// than a read takes, and waits otherwise.
func (s *session) read(ctx context.Context, rings <-chan struct{}, once bool) error {
	bell, stop := s.store.Doorbell().Wait()
	defer stop()
	p := pause{poll: pollMin, most: s.config.PollInterval, bell: bell, rings: rings, progress: s.ledger.progress}
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
			if s.ledger.busy() {
				continue
			}
		case found == nothing && p.again():
			continue
		case once && s.ledger.idle():
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
		p, ok := s.ledger.plan(time.Now())
		if !ok {
			return nil
		}
		p.shrink(&s.reads)
		found, err = s.readAll(ctx, p)
		s.reads.ended(err)
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

func (s *session) readAll(ctx context.Context, p plan) (finding, error) {
	found := nothing
	for _, step := range []func(context.Context, plan) (int, error){s.readNew, s.readDue, s.readResumed} {
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

func (s *session) readNew(ctx context.Context, p plan) (int, error) {
	rows, err := s.store.Read(ctx, p.reads, p.known, p.bytes)
	if err != nil {
		return 0, err
	}
	if s.ledger.watching() {
		snapshot, err := s.store.Snapshot(ctx)
		if err != nil {
			return 0, err
		}
		if s.ledger.observe(snapshot, time.Now()) {
			return 1, nil // to be read again, from further back
		}
	}
	charged, err := s.charge(ctx, rows, false)
	if err != nil {
		return 0, err
	}
	s.ledger.accept(p, rows, charged)
	if s.ledger.markWanted(time.Now()) {
		mark, err := s.store.Mark(ctx)
		if err != nil {
			return 0, err
		}
		s.ledger.setMark(mark, time.Now())
	}
	return len(rows), nil
}

func (s *session) readDue(ctx context.Context, p plan) (int, error) {
	if time.Since(s.dueRead) < min(dueInterval, s.config.PollInterval) {
		return 0, nil
	}
	s.dueRead = time.Now()
	rows, err := s.store.ReadDue(ctx, p.due, s.ledger.knownDue(p.at))
	if err != nil {
		return 0, err
	}
	charged, err := s.charge(ctx, rows, false)
	if err != nil {
		return 0, err
	}
	return s.ledger.acceptDue(p, rows, charged), nil
}

func (s *session) readResumed(ctx context.Context, p plan) (int, error) {
	s.ledger.recheckHeads(time.Now())
	lanes, reads := s.ledger.resumable()
	lanes, reads = shrinkKeys(&s.reads, lanes, reads)
	if len(reads) == 0 {
		return 0, nil
	}
	rows, err := s.store.ReadKeys(ctx, reads)
	if err != nil {
		return 0, err
	}
	charged, err := s.charge(ctx, rows, true)
	if err != nil {
		return 0, err
	}
	s.ledger.acceptResumed(lanes, reads, rows, charged, p.at)
	return len(lanes), nil
}

// charge counts an attempt of those rows that may have ended another relay, and returns which these are.
func (s *session) charge(ctx context.Context, rows []Message, resumed bool) (map[int64]bool, error) {
	suspects := s.ledger.suspects(rows, resumed)
	if len(suspects) == 0 {
		return nil, nil
	}
	charged := make(map[int64]bool, len(suspects))
	for _, m := range suspects {
		charged[m.Seq] = true
	}
	return charged, s.begin(ctx, suspects...)
}

// begin counts an attempt before it is made, so that one which ends this process has been counted.
func (s *session) begin(ctx context.Context, messages ...*Message) error {
	retries := make([]Retry, len(messages))
	for i, m := range messages {
		retries[i] = Retry{
			Position: m.Position, Attempts: oneMore(m.Attempts), Begun: true,
			Delay: backoff(int(oneMore(m.Attempts)), s.config.MinRetryDelay, s.config.MaxRetryDelay),
			Error: fmt.Sprintf("attempt %d began and has not ended", oneMore(m.Attempts)),
		}
	}
	var n int
	err := bounded(ctx, s.store, s.config.Lease/3, func(ctx context.Context) (err error) {
		n, err = s.store.Retry(ctx, s.id, s.ledger.owned(), retries)
		return err
	})
	switch {
	case err != nil:
		return err
	case n < len(retries):
		s.doubt.Store(true)
		return fmt.Errorf("outbox: of %d attempts %d could be charged", len(retries), n)
	}
	for _, m := range messages {
		m.Attempts = oneMore(m.Attempts)
	}
	return nil
}
