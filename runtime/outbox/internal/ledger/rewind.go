package ledger

import "time"

const (
	// sweepPeriod is how often the ledger looks for changes by operators or other processes.
	sweepPeriod = time.Minute
	// rewindPause is the least time between two rewinds.
	rewindPause = 250 * time.Millisecond
	// rereadCost estimates the cost of an event that is read and skipped.
	rereadCost = 10 * time.Microsecond
)

// maybeRewind rewinds the shards if events were skipped that may be published now, because their
// topic answers again or many keys are no longer held. It also rewinds at intervals, to find
// changes by operators or other processes. The more events a rewind reads only to skip them, the
// longer the intervals become.
func (l *Ledger) maybeRewind(now time.Time) {
	l.lookForProbes(now)
	if l.tooManyByKey() {
		l.want(now)
	}
	cost := min(time.Duration(l.skippedReads)*rereadCost, time.Hour)
	pause := max(sweepPeriod, 100*cost)
	if l.rewindWanted {
		pause = rewindPause + cost
	}
	if now.Sub(l.rewound) >= pause {
		l.rewind(now)
	}
	l.report()
}

// want asks for a rewind soon.
func (l *Ledger) want(now time.Time) {
	if !l.rewindWanted {
		l.rewindWanted = true
		l.wakeLater(max(0, l.rewound.Add(rewindPause).Sub(now)))
	}
	l.signal()
}

// rewind has the shards read again from their start. Keys that wait to be resumed no longer have
// to, since their skipped events are read in order with all others.
func (l *Ledger) rewind(now time.Time) {
	l.rewindWanted, l.acked, l.rewound, l.skippedReads, l.byKey = false, false, now, 0, 0
	l.resume, l.rechecks = nil, nil
	for name, t := range l.topics {
		t.left = false
		if t.idle() {
			delete(l.topics, name)
		}
	}
	for _, s := range l.shards {
		s.readFrom = 0
		clear(s.skipped)
		for _, lane := range s.lanes {
			l.rewindLane(lane)
		}
	}
}

func (l *Ledger) rewindLane(lane *lane) {
	lane.parked, lane.resuming, lane.recheck = false, false, false
	// the head is about to be tried again
	if len(lane.queue) > 0 && lane.queue[0].Seq == lane.head {
		lane.head = 0
	}
	switch {
	case lane.back == 0:
		lane.next = 0
		l.dispose(lane)
	case lane.head == 0 && lane.next != 0:
		// Events that go back to the outbox must be read before their successors.
		l.resumeLater(lane)
	}
}
