package ledger

// Unsettled returns the events to settle, and removes them from the ledger's list.
func (l *Ledger) Unsettled() []*Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.done
	l.done = nil
	return events
}

// Settled takes events out of flight whose results are recorded in the database.
func (l *Ledger) Settled(events []*Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		l.forget(e)
		if e.Verdict == Retried || e.Verdict == Untried {
			e.lane.back--
		}
		if e.isolated {
			l.isolatedOut = false
			l.wake.Broadcast()
		}
	}
	l.signal()
}
