// Package xid computes the watermark of an outbox in a database whose statements see snapshots of
// transaction ids, as PostgreSQL's do (section "System Information Functions and Operators" of its
// manual: pg_current_snapshot). Generated stores use it.
//
// Events become visible in the order in which their transactions commit, which is not the order of
// their seqs: a relay that read only after the last seq it saw would miss events that commit later.
// The watermark rests on two facts. A Mark (S, N) says that every event up to S belongs to a
// transaction below N. A Snapshot says which transactions below its Xmax have ended. So once a
// snapshot shows all below N as ended, every event up to S is visible in it, or was rolled back.
//
// If a few transactions last for long, the watermark moves on without them, and they are remembered
// as open: when one ends, the relay reads again from the watermark of that time.
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

// Source queries a database.
type Source interface {
	// Mark returns a bound that covers every event enqueued so far, committed or not: it reads the
	// last seq first, and takes a transaction id then.
	Mark(context.Context) (Mark, error)
	// Snapshot returns which transactions are visible now, including all that an earlier read saw.
	Snapshot(context.Context) (Snapshot, error)
}

const (
	markInterval = 100 * time.Millisecond // between two marks, since each costs a transaction id
	// MaxMarkWait is how long a mark waits for transactions to end before the watermark moves on
	// without them.
	MaxMarkWait = 500 * time.Millisecond
)

// lowWatermark is the state of one relay's watermark. It is immutable.
type lowWatermark struct {
	// Every event up to seq is visible or will never be, except those of transactions in open.
	seq int64
	// The transactions that the watermark no longer waits for, each with the seq after which its
	// events may be.
	open     map[uint64]int64
	mark     Mark // seq moves here next, if pending
	pending  bool
	markedAt time.Time
}

// Watermark implements storage.Store.Watermark for a store whose database can be a Source. It sends
// at most two statements: a Snapshot if the watermark waits for transactions to end, and a Mark if
// events above the watermark were seen.
func Watermark(
	ctx context.Context, source Source, p storage.WatermarkParams,
) (storage.WatermarkResult, error) {
	return WatermarkAt(ctx, source, p, time.Now())
}

// WatermarkAt is Watermark at the given time, for simulations.
func WatermarkAt(
	ctx context.Context, source Source, p storage.WatermarkParams, now time.Time,
) (storage.WatermarkResult, error) {
	w, _ := p.State.(lowWatermark)
	if w.watching() {
		snapshot, err := source.Snapshot(ctx)
		if err != nil {
			return storage.WatermarkResult{}, err
		}
		after, late := int64(0), false
		if w, after, late = w.observe(snapshot, now); late {
			result := w.result()
			result.Late, result.LateAfter = true, after
			return result, nil
		}
	}
	if w.wantsMark(p.Seen, now) {
		mark, err := source.Mark(ctx)
		if err != nil {
			return storage.WatermarkResult{}, err
		}
		w = w.marked(mark, now)
	}
	return w.result(), nil
}

func (w lowWatermark) result() storage.WatermarkResult {
	return storage.WatermarkResult{Seq: w.seq, Watching: w.watching(), State: w}
}

// watching reports whether a snapshot is needed.
func (w lowWatermark) watching() bool { return w.pending || len(w.open) > 0 }

// wantsMark reports whether events above the watermark were seen and a new mark is due.
func (w lowWatermark) wantsMark(seen int64, now time.Time) bool {
	return !w.pending && seen > w.seq && now.Sub(w.markedAt) >= markInterval
}

func (w lowWatermark) marked(m Mark, now time.Time) lowWatermark {
	w.mark, w.pending, w.markedAt = m, true, now
	return w
}

// observe evaluates a snapshot. If transactions that were open have ended, late is true, and their
// events have seqs greater than after.
func (w lowWatermark) observe(s Snapshot, now time.Time) (_ lowWatermark, after int64, late bool) {
	open := maps.Clone(w.open)
	for xid, low := range w.open {
		if s.running(xid) {
			continue
		}
		if !late || low < after {
			after = low
		}
		late = true
		delete(open, xid)
	}
	w.open = open
	return w.advance(s, now), after, late
}

// advance moves the watermark to its mark, if the snapshot allows it. It may change the map w.open.
func (w lowWatermark) advance(s Snapshot, now time.Time) lowWatermark {
	if !w.pending || s.Xmax < w.mark.Xid {
		return w
	}
	var unended []uint64
	for _, xid := range s.InProgress {
		if _, known := w.open[xid]; xid < w.mark.Xid && !known {
			unended = append(unended, xid)
		}
	}
	if len(unended) > 0 && now.Sub(w.markedAt) < MaxMarkWait {
		return w
	}
	for _, xid := range unended {
		if w.open == nil {
			w.open = map[uint64]int64{}
		}
		w.open[xid] = w.seq
	}
	w.seq, w.pending = max(w.seq, w.mark.Seq), false
	return w
}

// running reports whether the transaction had not ended when the snapshot was taken.
func (s Snapshot) running(xid uint64) bool {
	if xid >= s.Xmax {
		return true
	}
	_, found := slices.BinarySearch(s.InProgress, xid)
	return found
}
