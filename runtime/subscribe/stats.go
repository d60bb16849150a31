package subscribe

import (
	"sync"
	"sync/atomic"
)

// Stats are the numbers of deliveries so far, by how they ended. Each delivery counts in one of
// them, except that Duplicates says more about some of the acknowledged ones. What Run releases at
// its end counts in none.
type Stats struct {
	// Acknowledged counts deliveries that were handled, or are duplicates.
	Acknowledged int64
	// Duplicates counts those of the acknowledged deliveries whose event had been handled before.
	Duplicates int64
	// Ignored counts deliveries that were acknowledged because the consumer does not handle their
	// event in any version.
	Ignored int64
	// Retried counts deliveries that were handed back because their handler failed, or because
	// another delivery of the event was being handled.
	Retried int64
	// UnknownVersion counts deliveries that were handed back for a process that knows the version.
	UnknownVersion int64
	// Malformed counts deliveries that were handed back because attributes or payload cannot be
	// read.
	Malformed int64
	// Foreign counts deliveries that were rejected because they are no events of an outbox.
	Foreign int64
}

type counters struct {
	acknowledged, duplicates, ignored, retried, unknownVersion, malformed, foreign atomic.Int64
}

// Stats returns the numbers of deliveries so far, of all runs together.
func (s *Subscriber) Stats() Stats {
	return Stats{
		Acknowledged:   s.counts.acknowledged.Load(),
		Duplicates:     s.counts.duplicates.Load(),
		Ignored:        s.counts.ignored.Load(),
		Retried:        s.counts.retried.Load(),
		UnknownVersion: s.counts.unknownVersion.Load(),
		Malformed:      s.counts.malformed.Load(),
		Foreign:        s.counts.foreign.Load(),
	}
}

// onceEach finds out which names come for the first time. It remembers a limited number of them,
// since strangers may make them up.
type onceEach struct {
	mu   sync.Mutex
	seen map[string]bool
}

const maxOnceEach = 1000

// first reports whether name was not asked for before. Once there are too many names, it never is.
func (o *onceEach) first(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen[name] || len(o.seen) >= maxOnceEach {
		return false
	}
	if o.seen == nil {
		o.seen = map[string]bool{}
	}
	o.seen[name] = true
	return true
}
