package outbox

import (
	"context"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox/internal/ledger"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

const dueInterval = 100 * time.Millisecond

// reader reads events from the database into the ledger.
type reader struct {
	*core
	incarnation    incarnation
	watermarkState any           // of the store, opaque to the relay
	dueRead        time.Time     // when due events were read last
	sizes          ledger.Sizing // how large reads may be
}

// run reads until ctx ends or, if once is true, until there is nothing to do or a read fails. It
// reads again at once if the outbox has more events than a read returns, and pauses otherwise.
func (r *reader) run(ctx context.Context, wakeups <-chan struct{}, once bool) error {
	bell, stop := r.store.Doorbell().Wait()
	defer stop()
	p := pause{
		poll: minPoll, maxPoll: r.config.PollInterval, bell: bell, rings: wakeups,
		progress: r.ledger.Progress(),
	}
	queryCtx, cancel := lingering(ctx)
	defer cancel()
	for ctx.Err() == nil {
		found, err := r.cycle(queryCtx)
		switch {
		case err != nil && ctx.Err() == nil && once:
			return err
		case err != nil:
			r.health.report(ctx, reading, err)
			sleep(ctx, max(minPoll, r.config.PollInterval/4))
			continue
		case found == foundSomething:
			p.found()
			if r.ledger.Busy() {
				continue
			}
		case found == foundNothing && p.again():
			continue
		case once && r.ledger.Idle():
			return nil
		}
		p.wait(ctx)
	}
	return nil
}

// finding is the result of a cycle.
type finding int

const (
	notRead finding = iota // there was no room, or no shard to read
	foundNothing
	foundSomething
)

// cycle reads new events, events that are due for a retry, and events of keys that are no longer
// held. If it fails, the next cycle reads less. If it takes longer than the lease, its connection
// is considered broken.
func (r *reader) cycle(ctx context.Context) (found finding, err error) {
	err = bounded(ctx, r.store, r.config.Lease, func(ctx context.Context) error {
		if err := r.incarnation.check(ctx); err != nil {
			return err
		}
		p, ok := r.ledger.Plan(time.Now())
		if !ok {
			return nil
		}
		found, err = r.readAll(ctx, r.sizes.Plan(p))
		r.sizes.Ended(err)
		return err
	})
	if err != nil {
		return notRead, err
	}
	if found != notRead {
		r.health.report(ctx, reading, nil)
	}
	return found, nil
}

func (r *reader) readAll(ctx context.Context, p ledger.Plan) (finding, error) {
	found := foundNothing
	steps := []func(context.Context, ledger.Plan) (int, error){r.readNew, r.readDue, r.readResumed}
	for _, step := range steps {
		n, err := step(ctx, p)
		if err != nil {
			return notRead, err
		}
		if n > 0 {
			found = foundSomething
		}
	}
	return found, nil
}

func (r *reader) readNew(ctx context.Context, p ledger.Plan) (int, error) {
	read, err := r.store.Read(ctx,
		storage.ReadParams{Shards: p.Reads, Known: p.Known, MaxBytes: p.Bytes})
	if err != nil {
		return 0, err
	}
	late, err := r.advanceWatermark(ctx, read.Items)
	if err != nil {
		return 0, err
	}
	if late {
		return 1, nil // the next cycle reads again, from an earlier position
	}
	charged, err := r.chargeCandidates(ctx, read.Items, false)
	if err != nil {
		return 0, err
	}
	r.ledger.Accept(p, read.Items, charged)
	return len(read.Items), nil
}

// advanceWatermark asks the store for the watermark if events above it were read. If late is true,
// the read must not be used: events may be missing from it whose successors it contains.
func (r *reader) advanceWatermark(
	ctx context.Context, read []storage.Item,
) (late bool, err error) {
	seen, wanted := r.ledger.WatermarkWanted(read)
	if !wanted {
		return false, nil
	}
	result, err := r.store.Watermark(ctx,
		storage.WatermarkParams{Seen: seen, State: r.watermarkState})
	if err != nil {
		return false, err
	}
	r.watermarkState = result.State
	r.ledger.SetWatermark(result)
	return result.Late, nil
}

func (r *reader) readDue(ctx context.Context, p ledger.Plan) (int, error) {
	if time.Since(r.dueRead) < min(dueInterval, r.config.PollInterval) {
		return 0, nil
	}
	r.dueRead = time.Now()
	read, err := r.store.ReadDue(ctx,
		storage.ReadDueParams{Shards: p.Due, Known: r.ledger.KnownDue(p.At)})
	if err != nil {
		return 0, err
	}
	charged, err := r.chargeCandidates(ctx, read.Items, false)
	if err != nil {
		return 0, err
	}
	return r.ledger.AcceptDue(p, read.Items, charged), nil
}

func (r *reader) readResumed(ctx context.Context, p ledger.Plan) (int, error) {
	r.ledger.RecheckHeads(time.Now())
	resumption := r.sizes.Resumption(r.ledger.Resumable())
	if len(resumption.Keys) == 0 {
		return 0, nil
	}
	read, err := r.store.ReadKeys(ctx, storage.ReadKeysParams{Keys: resumption.Keys})
	if err != nil {
		return 0, err
	}
	charged, err := r.chargeCandidates(ctx, read.Items, true)
	if err != nil {
		return 0, err
	}
	r.ledger.AcceptResumed(resumption, read.Items, charged, p.At)
	return len(resumption.Keys), nil
}

// chargeCandidates charges an attempt to the poison candidates among items, and returns their seqs.
func (r *reader) chargeCandidates(
	ctx context.Context, items []storage.Item, resumed bool,
) (map[int64]bool, error) {
	candidates := r.ledger.PoisonCandidates(items, resumed)
	if len(candidates) == 0 {
		return nil, nil
	}
	charged := make(map[int64]bool, len(candidates))
	for _, i := range candidates {
		charged[i.Seq] = true
	}
	return charged, r.charge(ctx, candidates...)
}
