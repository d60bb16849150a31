package ledger

import (
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"pgregory.net/rapid"
)

const (
	modelShards      = 2
	modelMaxAttempts = 4
)

type modelRow struct {
	storage.Item
	xid       uint64
	committed bool
	tried     bool // it has a time for its next attempt
	due       bool // which has come
}

type model struct {
	t *rapid.T
	// The database.
	seq   int64
	xid   uint64
	ended uint64            // the highest that has ended
	open  map[uint64]string // transaction → the key it has locked
	rows  []*modelRow       // by seq
	fence int64
	batch int // events of one attempt at most
	// unlocked says that transactions take no locks.
	unlocked bool
	// The relay.
	ledger    *Ledger
	now       time.Time
	script    []func()   // what the reader does next
	with      []*Attempt // workers have
	settles   []*Event   // taken to be settled, and not yet recorded
	watermark any        // the state of the last answer
	// What came of it.
	order     map[string][]int64 // each key's committed seqs, in the order of commit
	published map[int64]int
	settled   map[int64]bool
	dead      map[int64]bool
	crashed   map[int64]bool       // published before a crash without being settled
	graves    map[int64]string     // dead letters that may be replayed, and their keys
	down      map[string]bool      // topics that cannot be reached
	answered  map[string]time.Time // when each topic last answered this relay
}

func newModel(t *rapid.T) *model {
	m := &model{
		batch: rapid.SampledFrom([]int{1, 3}).Draw(t, "batch"),
		t:     t, open: map[uint64]string{}, now: time.Unix(1, 0), xid: 10,
		order: map[string][]int64{}, published: map[int64]int{}, settled: map[int64]bool{},
		dead:    map[int64]bool{},
		crashed: map[int64]bool{}, graves: map[int64]string{}, down: map[string]bool{},
	}
	m.fresh(false)
	return m
}

// fresh starts a relay that knows nothing.
func (m *model) fresh(suspect bool) {
	m.ledger, m.script, m.with, m.settles = New(Config{
		MaxAttempts: modelMaxAttempts, MaxEvents: 64, MaxBytes: 1 << 20, Workers: 4,
		MinRetryDelay: time.Second, MaxRetryDelay: time.Minute, BatchSize: m.batch,
	}), nil, nil, nil
	m.ledger.rechecked, m.ledger.rewound = m.now, m.now
	m.answered, m.watermark = map[string]time.Time{}, nil
	m.fence++
	for i := range modelShards {
		m.ledger.Own([]storage.Ownership{{Shard: int32(i), Fence: m.fence, Suspect: suspect}},
			m.seq, 3)
	}
}

func (m *model) passTime(t *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(1, 700).Draw(t, "ms")) * time.Millisecond)
	for _, r := range m.rows {
		if r.tried {
			r.due = r.due || rapid.Bool().Draw(t, "due")
		}
	}
}

// passMinute makes the heads of held keys be looked up.
func (m *model) passMinute(t *rapid.T) {
	if rapid.IntRange(0, 2).Draw(t, "rarely") > 0 {
		t.Skip("rarely")
	}
	m.now = m.now.Add(sweepPeriod)
}

func (m *model) giveBack(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "rarely") > 0 {
		t.Skip("rarely")
	}
	m.ledger.GiveBack(1)
}

func (m *model) crash(t *rapid.T) {
	if rapid.IntRange(0, 5).Draw(t, "rarely") > 0 {
		t.Skip("rarely")
	}
	for seq := range m.published {
		if !m.settled[seq] {
			m.crashed[seq] = true
		}
	}
	for _, a := range m.with {
		for _, e := range a.Events {
			if rapid.Bool().Draw(t, "published all the same") {
				m.wasPublished(t, e)
				m.crashed[e.Seq] = true
			}
		}
	}
	m.fresh(rapid.Bool().Draw(t, "suspect"))
}

// finishEverything lets all transactions commit and the relay work until nothing is pending.
func (m *model) finishEverything(t *rapid.T) {
	for len(m.open) > 0 {
		m.end(t, true)
	}
	for range 2000 {
		if len(m.rows) == 0 {
			break
		}
		m.now = m.now.Add(100 * time.Millisecond)
		for _, r := range m.rows {
			r.due = true
		}
		m.step()
		m.publishAll(t)
		if m.settles == nil {
			m.settle(t)
		}
		m.record(t)
	}
	for _, r := range m.rows {
		s := m.ledger.shards[r.Shard]
		t.Errorf("event %d of key %q is never settled (published %d times): %#v, floor %d, top "+
			"%d, leaving %v, lane %+v, flight %+v, resume %v",
			r.Seq, r.Key, m.published[r.Seq], r.state(), s.readFrom, s.top, s.leaving,
			s.lanes[r.Key],
			s.flight, len(m.ledger.resume))
	}
	for _, seqs := range m.order {
		for _, seq := range seqs {
			if m.published[seq] == 0 && !m.dead[seq] {
				t.Errorf("event %d is lost", seq)
			}
		}
	}
}
