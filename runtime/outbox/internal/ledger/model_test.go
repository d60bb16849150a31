package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage/xid"
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

// state is what a message does not show of itself.
func (r *modelRow) state() any {
	return struct {
		shard, attempts                    int32
		interrupted, committed, tried, due bool
	}{r.Shard, r.Attempts, r.Interrupted, r.committed, r.tried, r.due}
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
	answered  map[string]time.Time // when each topic last answered this relay
}

func newModel(t *rapid.T) *model {
	m := &model{
		batch: rapid.SampledFrom([]int{1, 3}).Draw(t, "batch"),
		t:     t, open: map[uint64]string{}, now: time.Unix(1, 0), xid: 10,
		order: map[string][]int64{}, published: map[int64]int{}, settled: map[int64]bool{},
		dead:    map[int64]bool{},
		crashed: map[int64]bool{}, graves: map[int64]string{},
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

// step does the next piece of what session.cycle does, so that anything can happen between two
// pieces.
func (m *model) step() {
	if len(m.script) == 0 {
		m.script = []func(){m.readNew, m.readDue, m.readResumed}
	}
	next := m.script[0]
	m.script = m.script[1:]
	next()
}

func (m *model) then(f func()) { m.script = append([]func(){f}, m.script...) }

func (m *model) readNew() {
	p, ok := m.ledger.Plan(m.now)
	if !ok {
		m.script = nil
		return
	}
	for i := range p.Reads {
		p.Reads[i].Limit = min(p.Reads[i].Limit, 3)
	}
	m.then(func() { // the read takes its snapshot later than the plan was made
		var rows []storage.Item
		for _, read := range p.Reads {
			n := 0
			rows = append(rows, m.visible(func(r *modelRow) bool {
				if r.Shard != read.Shard || r.Seq <= read.After ||
					slices.Contains(p.Known, r.Seq) || n == read.Limit {
					return false
				}
				n++
				return true
			})...)
		}
		m.then(func() { m.watch(p, rows) })
	})
}

// watch asks for the watermark. The relay hears the answer later.
func (m *model) watch(p Plan, rows []storage.Item) {
	seen, wanted := m.ledger.WatermarkWanted(rows)
	if !wanted {
		m.accept(p, rows)
		return
	}
	answer, err := xid.WatermarkAt(context.Background(), m,
		storage.WatermarkParams{Seen: seen, State: m.watermark}, m.now)
	if err != nil {
		m.t.Fatal(err)
	}
	m.watermark = answer.State
	m.then(func() {
		m.ledger.SetWatermark(answer)
		if !answer.Late {
			m.accept(p, rows)
		}
	})
}

func (m *model) accept(p Plan, rows []storage.Item) {
	m.ledger.Accept(p, rows, m.charge(rows, false))
}

// charge counts attempts in the rows read and in the database.
func (m *model) charge(rows []storage.Item, resumed bool) map[int64]bool {
	charged := map[int64]bool{}
	for _, s := range m.ledger.Suspects(rows, resumed) {
		m.begun(s)
		charged[s.Seq] = true
	}
	return charged
}

func (m *model) begun(s *storage.Item) {
	s.Attempts++
	if r := m.row(s.Seq); r != nil {
		r.Attempts, r.Interrupted, r.tried, r.due = s.Attempts, true, true, false
	}
}

func (m *model) row(seq int64) *modelRow {
	for _, r := range m.rows {
		if r.Seq == seq {
			return r
		}
	}
	return nil
}

func (m *model) readDue() {
	p, ok := m.ledger.Plan(m.now)
	if !ok {
		return
	}
	known := m.ledger.KnownDue(m.now)
	m.then(func() {
		rows := m.visible(func(r *modelRow) bool {
			for _, read := range p.Due {
				if r.Shard == read.Shard && r.Seq <= read.After {
					return r.tried && r.due && !slices.Contains(known, r.Seq)
				}
			}
			return false
		})
		m.then(func() { m.ledger.AcceptDue(p, rows, m.charge(rows, false)) })
	})
}

func (m *model) readResumed() {
	m.ledger.RecheckHeads(m.now)
	resumed := m.ledger.Resumable()
	for i := range resumed.Keys {
		resumed.Keys[i].Limit = min(resumed.Keys[i].Limit, 2)
	}
	m.then(func() {
		var rows []storage.Item
		for _, read := range resumed.Keys {
			n := 0
			rows = append(rows, m.visible(func(r *modelRow) bool {
				if r.Key != read.Key || r.Seq < read.From || r.Seq > read.To || n == read.Limit {
					return false
				}
				n++
				return true
			})...)
		}
		m.then(func() { m.ledger.AcceptResumed(resumed, rows, m.charge(rows, true), m.now) })
	})
}

func (m *model) take(t *rapid.T) {
	m.ledger.mu.Lock()
	a := m.ledger.begin(m.now)
	m.ledger.mu.Unlock()
	if a == nil {
		t.Skip("nothing to take")
	}
	if a.Charge {
		m.begun(a.Events[0].Item)
		a.Charged()
	}
	m.checkShare(t, a)
	keys := map[string]int64{}
	for _, other := range append(m.with, a) {
		for _, e := range other.Events {
			if keys[e.Key] != 0 && e.Key != "" {
				t.Fatalf("two events of key %s are with workers: %d and %d", e.Key, keys[e.Key],
					e.Seq)
			}
			keys[e.Key] = e.Seq
		}
	}
	m.with = append(m.with, a)
}

// checkShare fails if an attempt has begun at a topic that holds its share and does not answer, or
// that is being tried by another one, or if a batch is not of one topic that answers.
func (m *model) checkShare(t *rapid.T, a *Attempt) {
	others, probes := 0, 0
	for _, other := range m.with {
		if other.topic == a.topic {
			others++
			if other.probe {
				probes++
			}
		}
	}
	for _, e := range a.Events {
		if e.Topic != a.topic.name {
			t.Fatalf("event %d of topic %s is tried with those of %s", e.Seq, e.Topic, a.topic.name)
		}
		if len(a.Events) > 1 && (a.probe || e.Interrupted) {
			t.Fatalf("event %d is not tried alone", e.Seq)
		}
	}
	mute := m.answered[a.topic.name].IsZero() || m.now.Sub(m.answered[a.topic.name]) > time.Hour
	if mute && others >= m.ledger.share && !a.probe {
		t.Fatalf("%d attempts are under way at topic %s, which does not answer, and another one "+
			"begins", others, a.topic.name)
	}
	if a.topic.isOpen() && (!a.probe || m.now.Before(a.topic.until)) {
		t.Fatalf("topic %s is tried although its breaker is open", a.topic.name)
	}
	if a.probe && probes > 0 {
		t.Fatalf("two events try whether topic %s is back", a.topic.name)
	}
}

func (m *model) finish(t *rapid.T) {
	if len(m.with) == 0 {
		t.Skip("no worker")
	}
	i := rapid.IntRange(0, len(m.with)-1).Draw(t, "worker")
	a := m.with[i]
	m.with = slices.Delete(m.with, i, i+1)
	outcomes := make([]Outcome, len(a.Events))
	for i := range outcomes {
		outcomes[i] = Outcome{Result: rapid.SampledFrom([]Result{
			Acknowledged, Acknowledged, Acknowledged, Refused, Impossible, Unreachable, Silent,
			NotTried,
		}).Draw(t, "result"), Err: errors.New("drawn")}
	}
	m.report(t, a, outcomes)
}

func (m *model) report(t *rapid.T, a *Attempt, outcomes []Outcome) {
	for i, e := range a.Events {
		if outcomes[i].Result == Acknowledged {
			m.wasPublished(t, e)
		}
		if outcomes[i].Result.answered() {
			m.answered[e.Topic] = m.now
		}
	}
	m.ledger.mu.Lock()
	defer m.ledger.mu.Unlock()
	m.ledger.finish(a, outcomes, m.now)
}

func (m *model) wasPublished(t *rapid.T, e *Event) {
	for _, d := range m.ledger.done { // a key goes on before its dead letter is recorded
		m.dead[d.Seq] = m.dead[d.Seq] || d.Verdict == Dead
	}
	m.published[e.Seq]++
	if m.settled[e.Seq] || m.published[e.Seq] > 1 && !m.crashed[e.Seq] {
		t.Fatalf("event %d was published again", e.Seq)
	}
	if e.Key == "" {
		return
	}
	if m.unlocked {
		return
	}
	at := slices.Index(m.order[e.Key], e.Seq)
	if at < 0 {
		t.Fatalf("event %d is published and not committed", e.Seq)
	}
	if m.published[e.Seq] > 1 {
		return
	}
	for _, before := range m.order[e.Key][:at] {
		if m.published[before] == 0 && !m.dead[before] {
			t.Fatalf("key %s: event %d was published before %d", e.Key, e.Seq, before)
		}
	}
}

func (m *model) settle(t *rapid.T) {
	if len(m.settles) > 0 {
		t.Skip("under way")
	}
	m.settles = m.ledger.Unsettled()
	for _, e := range m.settles { // the statement is executed
		r := m.row(e.Seq)
		if r == nil { // an operator was faster
			continue
		}
		switch e.Verdict {
		case Published:
			m.settled[e.Seq] = true
			m.remove(e.Seq)
		case Dead:
			m.dead[e.Seq] = true
			m.graves[e.Seq] = e.Key
			m.remove(e.Seq)
		case Retried:
			r.Attempts, r.Interrupted, r.tried, r.due = e.Attempts, false, true, false
		case Untried:
			r.Attempts, r.Interrupted, r.tried, r.due = e.Spent()-1, e.Interrupted, true, true
		}
	}
}

func (m *model) remove(seq int64) {
	m.rows = slices.DeleteFunc(m.rows, func(r *modelRow) bool { return r.Seq == seq })
}

// record is the end of a settle: the ledger hears of it.
func (m *model) record(*rapid.T) {
	m.ledger.Settled(m.settles)
	m.settles = nil
	m.ledger.Disown(m.ledger.Released())
	m.ownAgain()
}

func (m *model) ownAgain() {
	for i := range int32(modelShards) {
		if m.ledger.shards[i] == nil {
			m.fence++
			m.ledger.Own([]storage.Ownership{{Shard: i, Fence: m.fence}}, 0, 0)
		}
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
