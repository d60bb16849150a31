package ledger

import (
	"slices"
	"sort"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

const (
	// idleLimit is the limit of a read of a shard whose last read was not cut off.
	idleLimit = 16
	// candidateLimit is the limit if each event is charged before it is published.
	candidateLimit = 16
	// maxReadLimit is the highest limit, for every configuration.
	maxReadLimit = 1 << 16
)

// Plan has the parameters of one cycle of reads.
type Plan struct {
	Reads []storage.ShardRead
	Due   []storage.ShardRead // up to the highest seq seen
	Known []int64
	Bytes int // limit of the payloads of each shard
	At    time.Time

	shards    []*shard
	watermark int64 // before the read
}

// Plan returns what to read next; ok is false if there is no shard to read, or no room.
func (l *Ledger) Plan(now time.Time) (p Plan, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.maybeRewind(now)
	p = Plan{shards: l.readable(), watermark: l.watermark, At: now}
	half := l.MaxEvents / 2 // one half is read while the other is published and settled
	if len(p.shards) == 0 {
		return Plan{}, false
	}
	if l.inFlight > half || l.bytes > l.MaxBytes/2 {
		events, bytes := l.stuck(now)
		if l.inFlight-events > half || l.bytes-bytes > l.MaxBytes/2 {
			return Plan{}, false
		}
	}
	busy := 0
	for _, s := range p.shards {
		if s.busy && s.candidates == 0 {
			busy++
		}
	}
	p.Bytes = max(1, (l.MaxBytes-l.bytes)/len(p.shards))
	for _, s := range p.shards {
		limit := idleLimit
		switch {
		case s.candidates > 0:
			limit = candidateLimit
		case s.busy:
			limit = max(idleLimit, min(half/busy, p.Bytes/max(1, s.recent), maxReadLimit))
		}
		p.Reads = append(p.Reads,
			storage.ShardRead{Shard: s.Shard, After: s.readFrom, Limit: limit})
		p.Due = append(p.Due,
			storage.ShardRead{Shard: s.Shard, After: s.top,
				Limit: l.room(s, len(p.shards), idleLimit)})
		p.Known = s.known(p.Known)
	}
	return p, true
}

// room returns how many events may be read again of a shard, if n shards or keys are read, so that
// the limits of events and bytes in memory are not exceeded by much.
func (l *Ledger) room(s *shard, n, limit int) int {
	room := min(l.MaxEvents-l.inFlight, (l.MaxBytes-l.bytes)/max(1, s.largest))
	return max(1, min(limit, room/n))
}

// Busy reports whether the last read of a shard was cut off, so that there is more to read.
func (l *Ledger) Busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.anyBusy()
}

func (l *Ledger) anyBusy() bool {
	for _, s := range l.shards {
		if s.busy && !s.leaving {
			return true
		}
	}
	return false
}

// readable returns the shards that are not leaving, by number.
func (l *Ledger) readable() []*shard {
	shards := make([]*shard, 0, len(l.shards))
	for _, s := range l.shards {
		if !s.leaving {
			shards = append(shards, s)
		}
	}
	sort.Slice(shards, func(i, j int) bool { return shards[i].Shard < shards[j].Shard })
	return shards
}

// KnownDue returns the seqs that a read of due events must leave out: those in flight, since they
// may be settled before the read returns; and those that are due but wait for their key's head or
// for their topic, since they would use up the limit of the read.
func (l *Ledger) KnownDue(now time.Time) []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	seqs := make([]int64, 0, l.inFlight)
	for _, s := range l.shards {
		for seq := range s.flight {
			seqs = append(seqs, seq)
		}
		for seq, key := range s.blockedRetries {
			switch lane := s.lanes[key]; {
			case !lane.skips():
				delete(s.blockedRetries, seq)
			case lane.head != seq:
				seqs = append(seqs, seq)
			}
		}
		for seq, topic := range s.blockedTopics {
			if l.topics[topic].full(now) {
				seqs = append(seqs, seq)
			} else {
				delete(s.blockedTopics, seq)
			}
		}
	}
	return seqs
}

// WatermarkWanted returns the highest seq that was seen, in read or before, and whether the store
// must be asked for the watermark after this read.
func (l *Ledger) WatermarkWanted(read []storage.Item) (seen int64, wanted bool) {
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

// SetWatermark sets the watermark. It is called after a read, and before the items are accepted. If
// events below it became visible late, the shards are read again from before these.
func (l *Ledger) SetWatermark(r storage.WatermarkResult) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watermark, l.watching = max(l.watermark, r.Seq), r.Watching
	if r.Late {
		for _, s := range l.shards {
			s.readFrom = min(s.readFrom, r.LateAfter)
		}
	}
}

// Accept puts the items of a read of p in flight, or skips them. Items of one shard are adjacent
// and ascending. Events in charged have had their attempt counted already.
func (l *Ledger) Accept(p Plan, items []storage.Item, charged map[int64]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range p.shards {
		n := 0
		for n < len(items) && items[n].Shard == s.Shard {
			n++
		}
		if l.shards[s.Shard] == s && !s.leaving {
			s.cover(p, p.Reads[i], items[:n])
			for j := range items[:n] {
				l.acceptItem(s, &items[j], charged[items[j].Seq], p.At)
			}
		}
		items = items[n:]
	}
}

// acceptItem puts an event in flight, unless it already is, or is not due, or its key is held.
func (l *Ledger) acceptItem(s *shard, i *storage.Item, charged bool, now time.Time) {
	switch {
	case s.flight[i.Seq] != nil:
	case s.admit(i, l.full(i.Topic, now)):
		l.dispatch(s.laneOf(i.Key), i, charged)
	default:
		s.skip(i.Seq)
		l.skippedReads++
	}
}

// full reports whether events of a topic must be skipped. They are read again later.
func (l *Ledger) full(topic string, now time.Time) bool {
	t := l.topics[topic]
	if !t.full(now) {
		return false
	}
	t.left = true
	return true
}

// dispatch puts an event in flight, at the end of its lane.
func (l *Ledger) dispatch(lane *lane, i *storage.Item, charged bool) {
	e := &Event{Item: i, lane: lane, charged: charged}
	lane.shard.flight[i.Seq] = e
	lane.inFlight++
	l.inFlight++
	l.bytes += len(i.Payload)
	if err := l.hopeless(i, charged); err != nil {
		e.taken, e.charged, e.Err, e.Verdict = true, true, err, Dead
		l.done = append(l.done, e)
		l.signalDone()
		l.release(lane, i.Seq)
		l.dispose(lane)
		return
	}
	lane.queue = append(lane.queue, e)
	if len(lane.queue) == 1 && !lane.out {
		l.enqueue(lane)
	}
}

// AcceptDue puts the items of a read of due events in flight: the heads of held lanes, and events
// without a key. It returns the number of events that can be published.
func (l *Ledger) AcceptDue(
	p Plan, items []storage.Item, charged map[int64]bool,
) (accepted int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	offered := map[int32]int{}
	for i := range items {
		m := &items[i]
		s := l.shards[m.Shard]
		if offered[m.Shard]++; offered[m.Shard] == idleLimit && l.acked {
			l.want(p.At) // with so many due events, a rewind finds them faster
		}
		if s == nil || s.leaving || !slices.Contains(p.shards, s) || s.flight[m.Seq] != nil {
			continue
		}
		if l.topics[m.Topic].full(p.At) {
			s.blockedTopics[m.Seq] = m.Topic
			continue
		}
		lane := s.lanes[m.Key]
		if m.Key == "" {
			lane = newLane(s, "")
		}
		if m.Key == "" || lane != nil && lane.head == m.Seq && len(lane.queue) == 0 {
			l.dispatch(lane, m, charged[m.Seq])
			accepted++
		} else if lane.skips() {
			s.blockedRetries[m.Seq] = m.Key
		}
	}
	return accepted
}
