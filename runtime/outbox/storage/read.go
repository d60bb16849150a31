package storage

// ShardRead asks for what stands in one shard behind a position.
type ShardRead struct {
	Shard int32
	After int64 // exclusive
	Limit int   // events
}

// KeyRead asks for the events of one key between two positions.
type KeyRead struct {
	Shard int32
	Key   string
	From  int64 // inclusive
	To    int64 // inclusive
	Limit int   // events
}

// ReadParams are those of Store.Read.
type ReadParams struct {
	Shards []ShardRead
	Known  []int64 // seqs to leave out
	// MaxBytes cuts a shard off once its payloads reach it together. One event at least is
	// returned.
	MaxBytes int
}

// ReadResult has the events of one shard beside each other, in the order of ReadParams.Shards.
type ReadResult struct{ Items []Item }

// ReadDueParams ask for events up to each position (After) that are due, at most Limit of each
// shard, without the known ones.
type ReadDueParams struct {
	Shards []ShardRead
	Known  []int64
}

// ReadDueResult is that of Store.ReadDue.
type ReadDueResult struct{ Items []Item }

// ReadKeysParams are those of Store.ReadKeys.
type ReadKeysParams struct{ Keys []KeyRead }

// ReadKeysResult has the events of one key beside each other, in the order of ReadKeysParams.Keys.
type ReadKeysResult struct{ Items []Item }

// WatermarkParams are those of Store.Watermark.
type WatermarkParams struct {
	// Seen is the highest Seq that any read has returned. The relay wants the watermark to reach
	// it.
	Seen int64
	// State is what the previous call for this relay returned, or nil at first. Only the store
	// knows what it is.
	State any
}

// WatermarkResult is where the watermark stands.
type WatermarkResult struct {
	// Seq is the watermark: to reads that begin after this call, every event up to it is visible,
	// or never will be. Events of transactions that last for long are excepted, which Late
	// announces.
	Seq int64
	// Late says that since the previous call, events below an earlier watermark may have become
	// visible, behind LateAfter. What was read meanwhile must not be used: it may hold successors
	// of these events without them.
	Late      bool
	LateAfter int64
	// Watching says that the store wants to be asked after the next read, too, even if that reads
	// nothing.
	Watching bool
	State    any
}
