package outbox

import "sync/atomic"

// Stats are a relay's counters since it was made, and where it stands.
type Stats struct {
	Published   int64 // acknowledged by the broker and settled
	Retried     int64 // put off after a failure
	Dead        int64 // made dead letters
	LostSettles int64 // fenced off: another relay owned the shard, or the event was gone
	LeasesLost  int64 // times that the relay restarted with nothing in memory

	Shards    int  // owned
	InFlight  int  // events in memory
	Held      int  // keys that wait for a retry
	Listening bool // the doorbell of other processes is heard
	// a topic cannot be reached: true until it answers again, or nothing of it is pending
	Open bool

	// Backlog is that of the whole outbox, whichever relay is to publish it. Run counts it every
	// ten seconds.
	Backlog Backlog
}

type counters struct {
	published, retried, dead, lostSettles, leasesLost atomic.Int64
	listening                                         atomic.Bool
}
