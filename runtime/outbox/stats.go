package outbox

import "sync/atomic"

// Stats are a relay's counters since NewRelay, and its present state.
type Stats struct {
	Published   int64 // acknowledged by the broker and settled
	Retried     int64 // put off after a failure
	Dead        int64 // made dead letters
	LostSettles int64 // fenced off: another relay owned the shard, or the event was gone
	LeasesLost  int64 // the relay lost its lease and restarted with nothing in memory

	Shards    int  // owned by the relay
	InFlight  int  // events in memory
	Held      int  // keys that wait for a retry
	Listening bool // wake-ups of other processes arrive
	// Open says that the circuit breaker of a topic is open: the topic cannot be reached. It is
	// true until the topic answers again, or no event of it is pending.
	Open bool

	// Backlog is that of the whole outbox, for all relays together. Run counts it every ten
	// seconds.
	Backlog Backlog
}

type counters struct {
	published, retried, dead, lostSettles, leasesLost atomic.Int64
	listening                                         atomic.Bool
}
