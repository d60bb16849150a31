package ledger

import "time"

const (
	// how often it is looked for what somebody else has changed
	sweepPeriod = time.Minute
	rewindPause = 250 * time.Millisecond // between two times that the shards are read again
	rereadCost  = 10 * time.Microsecond  // what an event costs that is read and left alone, roughly
)

// lookAgain goes back to where the shards begin if there is something to be found: what was left
// alone because of its topic, or because its key was held while many others were. And it does so
// once in a while in any case, for what somebody else has changed. The more events are left alone
// again, the rarer it becomes.
func (l *Ledger) lookAgain(now time.Time) {
	l.lookForProbes(now)
	if l.tooManyByKey() {
		l.want(now)
	}
	cost := min(time.Duration(l.vain)*rereadCost, time.Hour)
	pause := max(sweepPeriod, 100*cost)
	if l.wanted {
		pause = rewindPause + cost
	}
	if now.Sub(l.rewound) >= pause {
		l.rewind(now)
	}
	l.report()
}

// want has the shards read again from their beginning, soon.
func (l *Ledger) want(now time.Time) {
	if !l.wanted {
		l.wanted = true
		l.wakeLater(max(0, l.rewound.Add(rewindPause).Sub(now)))
	}
	l.signal()
}

// rewind has the shards read again from their beginning. Keys that may go on are held no longer,
// since what was skipped of them is read in order with everything else.
func (l *Ledger) rewind(now time.Time) {
	l.wanted, l.acked, l.rewound, l.vain, l.byKey = false, false, now, 0, 0
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
	if len(lane.queue) > 0 && lane.queue[0].Seq == lane.head { // it is about to be tried again
		lane.head = 0
	}
	switch {
	case lane.back == 0:
		lane.next = 0
		l.dispose(lane)
	case lane.head == 0 && lane.next != 0:
		// What goes back to the outbox is seen before its successors.
		l.resumeLater(lane)
	}
}
