package ledger

import "github.com/outboxgen/outboxgen/runtime/outbox/storage"

// shard is the state of an owned shard: how far it has been read, and the lanes of its keys.
type shard struct {
	storage.Ownership
	readFrom int64 // the next read begins after this seq
	top      int64 // the highest seq seen
	flight   map[int64]*Event
	skipped  map[int64]struct{} // events after readFrom that were read and skipped
	// Events that are due but wait for their key's head, with their keys.
	blockedRetries map[int64]string
	// Events that are due but whose topic does not answer, with their topics.
	blockedTopics map[int64]string
	// Number of consecutive attempts without an answer that were not charged, by event.
	unanswered map[int64]int
	lanes      map[string]*lane
	largest    int  // bytes of the largest payload seen
	recent     int  // bytes of the largest payload of the last read
	busy       bool // the last read was cut off: there is more
	leaving    bool

	// If the previous owner vanished, as many events up to lastCandidate as it can have had in
	// flight are charged before they are published.
	lastCandidate int64
	candidates    int // how many are left to charge
}

func newShard(o storage.Ownership) *shard {
	return &shard{
		Ownership: o,
		flight:    map[int64]*Event{}, skipped: map[int64]struct{}{},
		blockedRetries: map[int64]string{}, blockedTopics: map[int64]string{},
		unanswered: map[int64]int{}, lanes: map[string]*lane{}, busy: true,
	}
}

// known appends the seqs after readFrom that have been read already.
func (s *shard) known(seqs []int64) []int64 {
	for seq := range s.flight {
		if seq > s.readFrom {
			seqs = append(seqs, seq)
		}
	}
	for seq := range s.skipped {
		seqs = append(seqs, seq)
	}
	return seqs
}

// cover moves readFrom as far as the read has covered the shard, but not above the watermark.
func (s *shard) cover(p Plan, read storage.ShardRead, items []storage.Item) {
	bytes, last := 0, s.top
	if len(items) > 0 {
		s.recent = 0
	}
	for i := range items {
		bytes += len(items[i].Payload)
		s.recent = max(s.recent, len(items[i].Payload))
		s.largest = max(s.largest, s.recent)
		s.top = max(s.top, items[i].Seq)
		last = items[i].Seq
	}
	s.busy = len(items) >= read.Limit || bytes >= p.Bytes
	covered := s.top
	if s.busy {
		covered = last
	}
	s.readFrom = max(s.readFrom, min(p.watermark, covered))
	if covered >= s.lastCandidate || !s.busy {
		s.candidates = 0 // all of them have been read
	}
	for seq := range s.skipped {
		if seq <= s.readFrom {
			delete(s.skipped, seq)
		}
	}
}

// skip notes that an event was read and skipped.
func (s *shard) skip(seq int64) {
	if seq > s.readFrom {
		s.skipped[seq] = struct{}{}
	}
}

// laneOf returns the lane of a key. It returns a new one for an event without a key.
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

// admit reports whether an event can be published now. If not, its lane notes that it was skipped.
func (s *shard) admit(i *storage.Item, full bool) bool {
	if i.Key == "" {
		return !i.NotDue && !full
	}
	lane := s.lanes[i.Key]
	if s.candidates == 0 && lane.heads(i) {
		lane.head = 0 // its successors follow it in this read
	}
	switch {
	case lane.skips():
		if i.Seq != lane.head {
			lane.skip(i.Seq)
		}
		return false
	case i.NotDue:
		s.laneOf(i.Key).head = i.Seq
		return false
	case full:
		s.laneOf(i.Key).park(i.Seq)
		return false
	}
	return true
}
