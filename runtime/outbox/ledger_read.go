package outbox

import (
	"slices"
	"sort"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

const (
	// events asked of a shard that had no more than that to offer
	idleLimit    = 16
	suspectLimit = 16      // the same if each is charged before it is published
	readMost     = 1 << 16 // events asked of a shard, whatever the configuration
)

// plan is one round of reading.
type plan struct {
	shards    []*shard
	reads     []storage.ShardRead
	due       []storage.ShardRead // with what was seen as their bound
	known     []int64
	bytes     int   // of payload, for each shard
	watermark int64 // as it stood before the read
	at        time.Time
}

// plan returns what to read next; ok is false if there is no shard to read, or no room.
func (l *ledger) plan(now time.Time) (p plan, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lookAgain(now)
	p = plan{shards: l.readable(), watermark: l.watermark, at: now}
	half := l.maxEvents / 2 // while one half is published and settled, the other is read
	if len(p.shards) == 0 {
		return plan{}, false
	}
	if l.inFlight > half || l.bytes > l.maxBytes/2 {
		events, bytes := l.stuck(now)
		if l.inFlight-events > half || l.bytes-bytes > l.maxBytes/2 {
			return plan{}, false
		}
	}
	busy := 0
	for _, s := range p.shards {
		if s.busy && s.suspects == 0 {
			busy++
		}
	}
	p.bytes = max(1, (l.maxBytes-l.bytes)/len(p.shards))
	for _, s := range p.shards {
		limit := idleLimit
		switch {
		case s.suspects > 0:
			limit = suspectLimit
		case s.busy:
			limit = max(idleLimit, min(half/busy, p.bytes/max(1, s.recent), readMost))
		}
		p.reads = append(p.reads, storage.ShardRead{Shard: s.Shard, After: s.floor, Limit: limit})
		p.due = append(p.due,
			storage.ShardRead{Shard: s.Shard, After: s.top, Limit: l.room(s, len(p.shards), idleLimit)})
		p.known = s.known(p.known)
	}
	return p, true
}

// room returns how many of the events that a shard has shown may be read again, as one of n, so
// that neither bound on what is in memory is passed by much.
func (l *ledger) room(s *shard, n, limit int) int {
	room := min(l.maxEvents-l.inFlight, (l.maxBytes-l.bytes)/max(1, s.largest))
	return max(1, min(limit, room/n))
}

// busy reports whether a shard had more to offer than its last read took.
func (l *ledger) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.anyBusy()
}

func (l *ledger) anyBusy() bool {
	for _, s := range l.shards {
		if s.busy && !s.leaving {
			return true
		}
	}
	return false
}

// readable returns the shards to read, in the order of their numbers.
func (l *ledger) readable() []*shard {
	shards := make([]*shard, 0, len(l.shards))
	for _, s := range l.shards {
		if !s.leaving {
			shards = append(shards, s)
		}
	}
	sort.Slice(shards, func(i, j int) bool { return shards[i].Shard < shards[j].Shard })
	return shards
}

// known adds what a read behind the floor would return although it was seen before.
func (s *shard) known(seqs []int64) []int64 {
	for seq := range s.flight {
		if seq > s.floor {
			seqs = append(seqs, seq)
		}
	}
	for seq := range s.skipped {
		seqs = append(seqs, seq)
	}
	return seqs
}

// knownDue returns what a read of due events must leave out: what is in flight, and perhaps settled
// before the read returns; and what waits behind its key's head, or for its topic, which would
// stand in the way of the others.
func (l *ledger) knownDue(now time.Time) []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	seqs := make([]int64, 0, l.inFlight)
	for _, s := range l.shards {
		for seq := range s.flight {
			seqs = append(seqs, seq)
		}
		for seq, key := range s.passed {
			switch lane := s.lanes[key]; {
			case !lane.held():
				delete(s.passed, seq)
			case lane.head != seq:
				seqs = append(seqs, seq)
			}
		}
		for seq, topic := range s.blocked {
			if l.topics[topic].full(now) {
				seqs = append(seqs, seq)
			} else {
				delete(s.blocked, seq)
			}
		}
	}
	return seqs
}

// watermarkWanted returns the highest seq that was seen, in read or before, and whether a read that
// returned these items must be followed by a question for the watermark.
func (l *ledger) watermarkWanted(read []storage.Item) (seen int64, wanted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.shards {
		seen = max(seen, s.top)
	}
	for i := range read {
		seen = max(seen, read[i].Seq)
	}
	return seen, l.watching || seen > l.watermark
}

// setWatermark takes in where the watermark stands after a read and before its acceptance. If
// events below it have become visible late, the shards are read again from before these.
func (l *ledger) setWatermark(r storage.WatermarkResult) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watermark, l.watching = max(l.watermark, r.Seq), r.Watching
	if r.Late {
		for _, s := range l.shards {
			s.floor = min(s.floor, r.LateAfter)
		}
	}
}

// accept takes in what a read of p returned. Rows of one shard are adjacent and ascending. What is in charged has had its attempt
// counted already.
func (l *ledger) accept(p plan, rows []storage.Item, charged map[int64]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range p.shards {
		n := 0
		for n < len(rows) && rows[n].Shard == s.Shard {
			n++
		}
		if l.shards[s.Shard] == s && !s.leaving {
			s.cover(p, p.reads[i], rows[:n])
			for j := range rows[:n] {
				l.acceptRow(s, &rows[j], charged[rows[j].Seq], p.at)
			}
		}
		rows = rows[n:]
	}
}

// cover moves the shard's floor up to what is decided: below the watermark, and within what the read has covered.
func (s *shard) cover(p plan, read storage.ShardRead, rows []storage.Item) {
	bytes, last := 0, s.top
	if len(rows) > 0 {
		s.recent = 0
	}
	for i := range rows {
		bytes += len(rows[i].Payload)
		s.recent = max(s.recent, len(rows[i].Payload))
		s.largest = max(s.largest, s.recent)
		s.top = max(s.top, rows[i].Seq)
		last = rows[i].Seq
	}
	s.busy = len(rows) >= read.Limit || bytes >= p.bytes
	covered := s.top
	if s.busy {
		covered = last
	}
	s.floor = max(s.floor, min(p.watermark, covered))
	if covered >= s.suspectSeq || !s.busy {
		s.suspects = 0 // what was in flight has passed
	}
	for seq := range s.skipped {
		if seq <= s.floor {
			delete(s.skipped, seq)
		}
	}
}

// skip leaves an event alone that has been read.
func (s *shard) skip(seq int64) {
	if seq > s.floor {
		s.skipped[seq] = struct{}{}
	}
}

// acceptRow puts an event in flight, unless it is there, or not due, or its key is held.
func (l *ledger) acceptRow(s *shard, m *storage.Item, charged bool, now time.Time) {
	switch {
	case s.flight[m.Seq] != nil:
	case s.admit(m, l.full(m.Topic, now)):
		l.fly(s.laneOf(m.Key), m, charged)
	default:
		s.skip(m.Seq)
		l.vain++
	}
}

// full reports whether events of a topic are to be left alone. It has them read again later.
func (l *ledger) full(topic string, now time.Time) bool {
	t := l.topics[topic]
	if !t.full(now) {
		return false
	}
	t.left = true
	return true
}

// admit decides whether an event can be published now; if not, the lane remembers it.
func (s *shard) admit(m *storage.Item, full bool) bool {
	if m.Key == "" {
		return !m.NotDue && !full
	}
	lane := s.lanes[m.Key]
	if s.suspects == 0 && lane.heads(m) {
		lane.head = 0 // its successors come behind it
	}
	switch {
	case lane.held():
		if m.Seq != lane.head {
			lane.skip(m.Seq)
		}
		return false
	case m.NotDue:
		s.laneOf(m.Key).head = m.Seq
		return false
	case full:
		s.laneOf(m.Key).park(m.Seq)
		return false
	}
	return true
}

// skip remembers the first event that is left for later.
func (l *lane) skip(seq int64) {
	if l.next == 0 || seq < l.next {
		l.next = seq
	}
}

// park leaves an event for when the ledger rewinds.
func (l *lane) park(seq int64) {
	l.skip(seq)
	l.parked = true
}

// heads reports whether m is what holds back the lane, and may be tried again, while nothing was
// skipped behind it.
func (l *lane) heads(m *storage.Item) bool {
	return l != nil && l.head == m.Seq && l.next == 0 && !m.NotDue
}

// held reports whether events of the lane are skipped.
func (l *lane) held() bool { return l != nil && (l.head != 0 || l.next != 0) }

// laneOf returns the lane of a key, which is a new one for an event without a key.
func (s *shard) laneOf(key string) *lane {
	lane := s.lanes[key]
	if lane == nil {
		lane = newLane(s, key)
		if key != "" {
			s.lanes[key] = lane
		}
	}
	return lane
}

func newLane(s *shard, key string) *lane { return &lane{shard: s, key: key} }

// fly puts an event in flight and at the end of its lane.
func (l *ledger) fly(lane *lane, m *storage.Item, charged bool) {
	e := &event{Item: m, lane: lane, charged: charged}
	lane.shard.flight[m.Seq] = e
	lane.flying++
	l.inFlight++
	l.bytes += len(m.Payload)
	if err := l.hopeless(m, charged); err != nil {
		e.taken, e.charged, e.err, e.verdict = true, true, err, dead
		l.done = append(l.done, e)
		l.signalDone()
		l.letGo(lane, m.Seq)
		l.dispose(lane)
		return
	}
	lane.queue = append(lane.queue, e)
	if len(lane.queue) == 1 && !lane.out {
		l.enqueue(lane)
	}
}

// hopeless returns why an event is a dead letter without another attempt, or nil.
func (l *ledger) hopeless(m *storage.Item, charged bool) error {
	if err := m.Fault(); err != nil {
		return err
	}
	if m.Interrupted && !charged && l.spentAll(m.Attempts) { // it has ended its relay once too often
		return errUnfinished
	}
	return nil
}

// suspects returns those rows that a vanished relay may have had in flight. Their attempt must be charged before it is made.
func (l *ledger) suspects(rows []storage.Item, resumed bool) []*storage.Item {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.anySuspect() {
		return nil
	}
	var out []*storage.Item
	waiting := map[string]bool{}
	for i := range rows {
		m := &rows[i]
		if waiting[m.Key] = waiting[m.Key] || m.NotDue && m.Key != ""; waiting[m.Key] {
			continue
		}
		s := l.shards[m.Shard]
		if s == nil || s.suspects <= 0 || m.Seq > s.suspectSeq || m.Interrupted || m.NotDue || s.flight[m.Seq] != nil {
			continue
		}
		if lane := s.lanes[m.Key]; !resumed && lane.held() && lane.head != m.Seq {
			continue
		}
		s.suspects--
		out = append(out, m)
	}
	return out
}

// anySuspect reports whether a shard has events left to charge.
func (l *ledger) anySuspect() bool {
	for _, s := range l.shards {
		if s.suspects > 0 {
			return true
		}
	}
	return false
}

// acceptDue takes in what a read of due events returned: the heads of held lanes, and events without a key.
func (l *ledger) acceptDue(p plan, rows []storage.Item, charged map[int64]bool) (accepted int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	offered := map[int32]int{}
	for i := range rows {
		m := &rows[i]
		s := l.shards[m.Shard]
		if offered[m.Shard]++; offered[m.Shard] == idleLimit && l.acked {
			l.want(p.at) // so many are due that they are found faster among all the others
		}
		if s == nil || s.leaving || !slices.Contains(p.shards, s) || s.flight[m.Seq] != nil {
			continue
		}
		if l.topics[m.Topic].full(p.at) {
			s.blocked[m.Seq] = m.Topic
			continue
		}
		lane := s.lanes[m.Key]
		if m.Key == "" {
			lane = newLane(s, "")
		}
		if m.Key == "" || lane != nil && lane.head == m.Seq && len(lane.queue) == 0 {
			l.fly(lane, m, charged[m.Seq])
			accepted++
		} else if lane.held() {
			s.passed[m.Seq] = m.Key
		}
	}
	return accepted
}
