package storage

// ShardRead asks for the events of one shard after a position.
type ShardRead struct {
	Shard int32
	After int64 // seq, exclusive
	Limit int   // number of events
}

// KeyRead asks for the events of one key between two positions.
type KeyRead struct {
	Shard int32
	Key   string
	From  int64 // seq, inclusive
	To    int64 // seq, inclusive
	Limit int   // number of events
}

// ReadParams are the parameters of Store.Read.
type ReadParams struct {
	Shards []ShardRead
	Known  []int64 // seqs to leave out
	// MaxBytes limits the payloads of each shard: no event follows the one that reaches it. At
	// least one event is returned.
	MaxBytes int
}

// ReadResult has the events grouped by shard, in the order of ReadParams.Shards.
type ReadResult struct{ Items []Item }

// ReadDueParams ask for events that are due, with a seq of at most After, and for at most Limit of
// each shard. Events whose seq is in Known are left out.
type ReadDueParams struct {
	Shards []ShardRead
	Known  []int64
}

// ReadDueResult is the result of Store.ReadDue.
type ReadDueResult struct{ Items []Item }

// ReadKeysParams are the parameters of Store.ReadKeys.
type ReadKeysParams struct{ Keys []KeyRead }

// ReadKeysResult has the events grouped by key, in the order of ReadKeysParams.Keys.
type ReadKeysResult struct{ Items []Item }

// WatermarkParams are the parameters of Store.Watermark.
type WatermarkParams struct {
	// Seen is the highest Seq that any read has returned. The relay wants the watermark to reach
	// it.
	Seen int64
	// State is the State of the previous result for this relay, or nil at first. Its type is the
	// store's.
	State any
}

// WatermarkResult is the result of Store.Watermark.
type WatermarkResult struct {
	// Seq is the watermark: every event up to it is visible to reads that begin after this call, or
	// will never be visible. Events of long transactions are an exception, which Late reports.
	Seq int64
	// Late says that events between LateAfter and an earlier watermark may have become visible
	// since the previous call. Items that were read in between must not be used: they may include
	// successors of these events, but not the events themselves.
	Late      bool
	LateAfter int64
	// Watching asks the relay to call Watermark after the next read in any case, even if that
	// returns no events.
	Watching bool
	State    any
}
