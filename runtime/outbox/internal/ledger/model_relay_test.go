package ledger

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage/xid"
	"pgregory.net/rapid"
)

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
	for _, s := range m.ledger.PoisonCandidates(rows, resumed) {
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
	m.checkAlone(t, a)
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

// checkAlone fails if two events that may end the process are tried at once, or if a batch is too
// large.
func (m *model) checkAlone(t *rapid.T, a *Attempt) {
	if len(a.Events) > m.batch {
		t.Fatalf("a batch has %d events, want %d at most", len(a.Events), m.batch)
	}
	if !a.Events[0].Interrupted {
		return
	}
	for _, s := range m.ledger.shards {
		for _, e := range s.flight {
			if e.isolated && e != a.Events[0] {
				t.Fatalf("event %d is tried while %d is, and is not settled",
					a.Events[0].Seq, e.Seq)
			}
		}
	}
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

// outage begins or ends an outage of a topic.
func (m *model) outage(t *rapid.T) {
	topic := rapid.SampledFrom([]string{"even", "odd"}).Draw(t, "topic")
	m.down[topic] = !m.down[topic]
}

func (m *model) finish(t *rapid.T) {
	if len(m.with) == 0 {
		t.Skip("no worker")
	}
	i := rapid.IntRange(0, len(m.with)-1).Draw(t, "worker")
	a := m.with[i]
	m.with = slices.Delete(m.with, i, i+1)
	outcomes := make([]Outcome, len(a.Events))
	results := []Result{
		Acknowledged, Acknowledged, Acknowledged, Refused, Impossible, Unreachable, Silent,
		NotTried,
	}
	if m.down[a.topic.name] {
		results = []Result{Unreachable, Unreachable, Silent}
	}
	for i := range outcomes {
		outcomes[i] = Outcome{
			Result: rapid.SampledFrom(results).Draw(t, "result"), Err: errors.New("drawn"),
		}
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
