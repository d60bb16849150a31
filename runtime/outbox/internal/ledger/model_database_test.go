package ledger

import (
	"context"
	"fmt"
	"slices"

	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage/xid"
	"pgregory.net/rapid"
)

// state is what a message does not show of itself.
func (r *modelRow) state() any {
	return struct {
		shard, attempts                    int32
		interrupted, committed, tried, due bool
	}{r.Shard, r.Attempts, r.Interrupted, r.committed, r.tried, r.due}
}

func (m *model) begin(t *rapid.T) {
	key := rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "key")
	for _, locked := range m.open {
		if key != "" && locked == key && !m.unlocked {
			t.Skip("locked")
		}
	}
	m.xid++
	m.open[m.xid] = key
	m.insert(m.xid)
}

func (m *model) insert(xid uint64) {
	m.seq++
	key := m.open[xid]
	shard := int32(m.seq % modelShards)
	if key != "" {
		shard = int32(key[0]) % modelShards
	}
	topic := []string{"even", "odd"}[m.seq%2] // a key may have events of several
	m.rows = append(m.rows, &modelRow{
		Item: storage.Item{
			Message:  storage.Message{Type: "x", Version: 1, Key: key, Topic: topic},
			Position: storage.Position{Shard: shard, Seq: m.seq},
		}, xid: xid,
	})
}

func (m *model) pick(t *rapid.T) uint64 {
	if len(m.open) == 0 {
		t.Skip("no transaction")
	}
	var xids []uint64
	for xid := range m.open {
		xids = append(xids, xid)
	}
	slices.Sort(xids)
	return rapid.SampledFrom(xids).Draw(t, "transaction")
}

func (m *model) enqueue(t *rapid.T) { m.insert(m.pick(t)) }

func (m *model) end(t *rapid.T, commit bool) {
	m.commit(m.pick(t), commit)
}

func (m *model) commit(xid uint64, commit bool) {
	delete(m.open, xid)
	m.ended = max(m.ended, xid)
	var kept []*modelRow
	for _, r := range m.rows {
		if r.xid == xid && !r.committed {
			if !commit {
				continue
			}
			r.committed = true
			if r.Key != "" {
				m.order[r.Key] = append(m.order[r.Key], r.Seq)
			} else {
				m.order[fmt.Sprint("#", r.Seq)] = []int64{r.Seq}
			}
		}
		kept = append(kept, r)
	}
	m.rows = kept
}

// visible returns copies of what a read would return.
func (m *model) visible(filter func(*modelRow) bool) (out []storage.Item) {
	for _, r := range m.rows {
		if r.committed && filter(r) {
			c := r.Item
			c.NotDue = r.tried && !r.due
			out = append(out, c)
		}
	}
	return out
}

// Snapshot is as PostgreSQL's: Xmax is the highest transaction that has ended plus one, so that
// others above it may be at work.
func (m *model) Snapshot(context.Context) (xid.Snapshot, error) {
	s := xid.Snapshot{Xmax: m.ended + 1}
	for xid := range m.open {
		if xid <= m.ended {
			s.InProgress = append(s.InProgress, xid)
		}
	}
	slices.Sort(s.InProgress)
	return s, nil
}

// Mark takes a transaction id, as PostgreSQL's does.
func (m *model) Mark(context.Context) (xid.Mark, error) {
	m.xid++
	m.ended = m.xid
	return xid.Mark{Seq: m.seq, Xid: m.xid}, nil
}

func (m *model) row(seq int64) *modelRow {
	for _, r := range m.rows {
		if r.Seq == seq {
			return r
		}
	}
	return nil
}

func (m *model) remove(seq int64) {
	m.rows = slices.DeleteFunc(m.rows, func(r *modelRow) bool { return r.Seq == seq })
}

// makeDue is what a consumer does that meets a duplicate.
func (m *model) makeDue(t *rapid.T) {
	for _, r := range m.rows {
		r.due = r.due || r.tried && rapid.Bool().Draw(t, "due")
	}
}

// operatorRemoves deletes a row that nobody is working on.
func (m *model) operatorRemoves(t *rapid.T) {
	if len(m.rows) == 0 || rapid.IntRange(0, 3).Draw(t, "rarely") > 0 {
		t.Skip("rarely")
	}
	r := m.rows[rapid.IntRange(0, len(m.rows)-1).Draw(t, "row")]
	if !r.committed || m.ledger.shards[r.Shard].flight[r.Seq] != nil {
		t.Skip("not its to remove")
	}
	m.dead[r.Seq] = true
	m.remove(r.Seq)
}

// operatorResets makes a row as if it had never been tried, and may move one without a key to
// another shard, behind the ledger's back.
func (m *model) operatorResets(t *rapid.T) {
	if len(m.rows) == 0 || rapid.IntRange(0, 1).Draw(t, "rarely") > 0 {
		t.Skip("rarely")
	}
	r := m.rows[rapid.IntRange(0, len(m.rows)-1).Draw(t, "row")]
	if !r.committed || m.ledger.shards[r.Shard].flight[r.Seq] != nil || len(m.script) > 0 {
		t.Skip("the relay is at it")
	}
	r.Attempts, r.Interrupted, r.tried, r.due = 0, false, false, false
	if r.Key == "" && rapid.Bool().Draw(t, "moved") {
		r.Shard = (r.Shard + 1) % modelShards
	}
}

// replay enqueues again what is dead, under another seq.
func (m *model) replay(t *rapid.T) {
	for seq, key := range m.graves {
		m.xid++
		m.open[m.xid] = key
		m.insert(m.xid)
		delete(m.graves, seq)
		m.commit(m.xid, true)
		return
	}
	t.Skip("nothing is dead")
}
