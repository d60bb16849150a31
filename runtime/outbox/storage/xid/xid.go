// Package xid computes the watermark of an outbox in a database whose statements see snapshots of
// transaction ids, as PostgreSQL's do (section "System Information Functions and Operators" of its
// manual: pg_current_snapshot). Generated stores use it.
//
// Events become visible in the order in which their transactions commit, which is not the order of
// their seqs: a relay that went on behind the last seq it saw would lose those that commit late.
// The watermark rests on two facts. A Mark (S, N) says that every event up to S belongs to a
// transaction below N. A Snapshot says which transactions below its Xmax have ended. So once a
// snapshot shows all below N as ended, every event up to S is visible in it, or was rolled back.
//
// If a few transactions last for long, the watermark moves on without them, and they are remembered
// as open: when one ends, its events are looked for behind the watermark that it was left with.
//
// The snapshot's own Xmax would not do for N: it is the highest ended transaction plus one, and
// transactions from there on may have enqueued already. Hence a Mark takes a transaction id.
package xid

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// Snapshot is what a statement of the database can see: transactions from Xmax on, and those in
// InProgress, had not ended.
type Snapshot struct {
	Xmax       uint64
	InProgress []uint64 // ascending, each below Xmax
}

// Mark is an upper bound: an event whose seq is at most Seq was enqueued by a transaction below
// Xid.
type Mark struct {
	Seq int64
	Xid uint64
}

// Source asks a database. Its methods may return errors of any kind.
type Source interface {
	// Mark returns a bound that covers every event enqueued so far, committed or not: it reads the
	// last seq first, and takes a transaction id then.
	Mark(context.Context) (Mark, error)
	// Snapshot returns what can be seen now: no less than any read that returned before.
	Snapshot(context.Context) (Snapshot, error)
}

const (
	markInterval = 100 * time.Millisecond // between two marks, since each costs a transaction id
	// MaxMarkWait is how long a mark waits for transactions to end before the watermark moves on
	// without them.
	MaxMarkWait = 500 * time.Millisecond
)

// Horizon is how far the events of an outbox are decided, as one relay knows it. A Horizon is not
// changed once it is made.
type Horizon struct {
	// events up to here are decided, but for those of transactions in open
	seq int64
	// a transaction that lasts, and the seq behind which its events may be
	open     map[uint64]int64
	mark     Mark // what seq moves to next, if pending
	pending  bool
	markedAt time.Time
}

// Watermark implements Store.Watermark for a store that can answer as a Source. It sends at most
// two statements: a Snapshot if the horizon waits for transactions to end, and a Mark if more was
// seen than the horizon covers.
func Watermark(
	ctx context.Context, source Source, p storage.WatermarkParams,
) (storage.WatermarkResult, error) {
	return WatermarkAt(ctx, source, p, time.Now())
}

// WatermarkAt is Watermark by another clock, for simulations.
func WatermarkAt(
	ctx context.Context, source Source, p storage.WatermarkParams, now time.Time,
) (storage.WatermarkResult, error) {
	h, _ := p.State.(Horizon)
	if h.watching() {
		snapshot, err := source.Snapshot(ctx)
		if err != nil {
			return storage.WatermarkResult{}, err
		}
		after, late := int64(0), false
		if h, after, late = h.observe(snapshot, now); late {
			result := h.result()
			result.Late, result.LateAfter = true, after
			return result, nil
		}
	}
	if h.wantsMark(p.Seen, now) {
		mark, err := source.Mark(ctx)
		if err != nil {
			return storage.WatermarkResult{}, err
		}
		h = h.marked(mark, now)
	}
	return h.result(), nil
}

func (h Horizon) result() storage.WatermarkResult {
	return storage.WatermarkResult{Seq: h.seq, Watching: h.watching(), State: h}
}

// watching reports whether snapshots have anything to say.
func (h Horizon) watching() bool { return h.pending || len(h.open) > 0 }

// wantsMark reports whether the horizon lags behind what was seen, so that a mark would help.
func (h Horizon) wantsMark(seen int64, now time.Time) bool {
	return !h.pending && seen > h.seq && now.Sub(h.markedAt) >= markInterval
}

func (h Horizon) marked(m Mark, now time.Time) Horizon {
	h.mark, h.pending, h.markedAt = m, true, now
	return h
}

// observe takes in a snapshot. If transactions that were open have ended, late is true, and their
// events stand behind after.
func (h Horizon) observe(s Snapshot, now time.Time) (_ Horizon, after int64, late bool) {
	open := maps.Clone(h.open)
	for xid, low := range h.open {
		if s.running(xid) {
			continue
		}
		if !late || low < after {
			after = low
		}
		late = true
		delete(open, xid)
	}
	h.open = open
	return h.advance(s, now), after, late
}

// advance moves the horizon to its mark, if the snapshot allows it. It changes h.open, which is the
// caller's own.
func (h Horizon) advance(s Snapshot, now time.Time) Horizon {
	if !h.pending || s.Xmax < h.mark.Xid {
		return h
	}
	var unended []uint64
	for _, xid := range s.InProgress {
		if _, known := h.open[xid]; xid < h.mark.Xid && !known {
			unended = append(unended, xid)
		}
	}
	if len(unended) > 0 && now.Sub(h.markedAt) < MaxMarkWait {
		return h
	}
	for _, xid := range unended {
		if h.open == nil {
			h.open = map[uint64]int64{}
		}
		h.open[xid] = h.seq
	}
	h.seq, h.pending = max(h.seq, h.mark.Seq), false
	return h
}

// running reports whether the transaction had not ended when the snapshot was taken.
func (s Snapshot) running(xid uint64) bool {
	if xid >= s.Xmax {
		return true
	}
	_, found := slices.BinarySearch(s.InProgress, xid)
	return found
}
