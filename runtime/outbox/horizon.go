package outbox

import (
	"slices"
	"time"
)

// horizon knows below which seq no event can turn up any more. Events become visible in the order in which their
// transactions commit, which is not the order of their seqs: a relay that went on from the last seq it saw would lose those
// that commit late.
//
// It works on two facts. A Mark (S, N) says that every event up to S belongs to a transaction below N. A Snapshot says which
// transactions below its Xmax have ended. So once a snapshot shows all below N as ended, every event up to S is visible in
// it, or was rolled back. Where a few transactions last for long, the horizon moves on without them, and they are remembered
// as open: when one ends, its events are looked for behind the horizon that it was left with.
//
// (That the snapshot's own Xmax would do for N is not true: it is the highest ended transaction plus one, and transactions
// from there on may have enqueued already. Hence the Mark takes a transaction id.)
type horizon struct {
	seq      int64            // events up to here are decided, but for those of transactions in open
	open     map[uint64]int64 // a transaction that lasts, and the seq behind which its events may stand
	mark     Mark             // what seq moves to next, if pending
	pending  bool
	markedAt time.Time
}

// patience is how long a mark waits for transactions to end before it moves on without them.
const patience = 500 * time.Millisecond

func (h *horizon) set(m Mark, now time.Time) {
	h.mark, h.pending, h.markedAt = m, true, now
}

// watching reports whether snapshots have anything to say.
func (h *horizon) watching() bool { return h.pending || len(h.open) > 0 }

// observe takes in a snapshot. Where transactions that were open have ended, late is true, and their events stand behind from.
func (h *horizon) observe(s Snapshot, now time.Time) (from int64, late bool) {
	for xid, low := range h.open {
		if s.running(xid) {
			continue
		}
		if !late || low < from {
			from = low
		}
		late = true
		delete(h.open, xid)
	}
	h.advance(s, now)
	return from, late
}

func (h *horizon) advance(s Snapshot, now time.Time) {
	if !h.pending || s.Xmax < h.mark.Xid {
		return
	}
	var unended []uint64
	for _, xid := range s.InProgress {
		if _, known := h.open[xid]; xid < h.mark.Xid && !known {
			unended = append(unended, xid)
		}
	}
	if len(unended) > 0 && now.Sub(h.markedAt) < patience {
		return
	}
	for _, xid := range unended {
		if h.open == nil {
			h.open = map[uint64]int64{}
		}
		h.open[xid] = h.seq
	}
	h.seq, h.pending = max(h.seq, h.mark.Seq), false
}

// running reports whether the transaction had not ended when the snapshot was taken.
func (s Snapshot) running(xid uint64) bool {
	if xid >= s.Xmax {
		return true
	}
	_, found := slices.BinarySearch(s.InProgress, xid)
	return found
}
