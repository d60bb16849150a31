package ledger

import "github.com/outboxgen/outboxgen/runtime/outbox/storage"

// shard is an owned shard: how far it is read, and the lanes of its keys.
type shard struct {
	storage.Ownership
	readFrom int64 // exclusive: behind it the next read begins
	top      int64 // the highest seq seen
	flight   map[int64]*Event
	skipped  map[int64]struct{} // seen behind readFrom, and left alone
	// Due, but behind their key's head: the key of each.
	blockedRetries map[int64]string
	// Due, but of a topic that does not answer: the topic of each.
	blockedTopics map[int64]string
	// Attempts in a row without an answer that were not charged.
	unanswered map[int64]int
	lanes      map[string]*lane
	largest    int  // payload seen
	recent     int  // largest payload of the last read
	busy       bool // the last read was cut off: there is more
	leaving    bool

	// If the previous owner vanished, events up to suspectSeq are charged before they are
	// published, as many as could have been in flight.
	suspectSeq int64
	suspects   int
}

func newShard(o storage.Ownership) *shard {
	return &shard{
		Ownership: o,
		flight:    map[int64]*Event{}, skipped: map[int64]struct{}{},
		blockedRetries: map[int64]string{}, blockedTopics: map[int64]string{},
		unanswered: map[int64]int{}, lanes: map[string]*lane{}, busy: true,
	}
}

// known adds what a read behind readFrom would return although it was seen before.
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

// cover moves readFrom up to what is decided: below the watermark, and within what the read has
// covered.
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
	if covered >= s.suspectSeq || !s.busy {
		s.suspects = 0 // what was in flight has passed
	}
	for seq := range s.skipped {
		if seq <= s.readFrom {
			delete(s.skipped, seq)
		}
	}
}

// skip leaves an event alone that has been read.
func (s *shard) skip(seq int64) {
	if seq > s.readFrom {
		s.skipped[seq] = struct{}{}
	}
}

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

// admit decides whether an event can be published now; if not, its lane remembers it.
func (s *shard) admit(i *storage.Item, full bool) bool {
	if i.Key == "" {
		return !i.NotDue && !full
	}
	lane := s.lanes[i.Key]
	if s.suspects == 0 && lane.heads(i) {
		lane.head = 0 // its successors come behind it
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
