package ledger

import "time"

// StaffWith has hire called whenever another worker is of use. A worker calls Next until that
// returns nil.
func (l *Ledger) StaffWith(hire func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hire = hire
}

// call has a worker look for something to publish: one that has nothing to do, or a new one. If all
// are with topics that do not answer, others are found for them by and by.
func (l *Ledger) call() {
	switch {
	case l.closed:
	case l.idleWorkers > 0:
		l.wake.Signal()
	case l.workers < l.Workers:
		l.hireOne()
	case !l.watched:
		l.watched = true
		time.AfterFunc(silence/2, l.replaceWaiting)
	}
}

// callMore passes on what one worker leaves.
func (l *Ledger) callMore() {
	if len(l.turns) > 0 {
		l.call()
	}
}

func (l *Ledger) hireOne() {
	l.workers++
	if l.hire != nil {
		l.hire()
	}
}

// replaceWaiting begins a worker for each one that waits for a silent topic, as far as there is
// work.
func (l *Ledger) replaceWaiting() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watched = false
	if l.closed || l.idleWorkers > 0 {
		return
	}
	ready := 0
	for _, t := range l.turns {
		ready += t.waiting()
	}
	for range min(ready, l.staff(time.Now())-l.workers) {
		l.hireOne()
	}
	if ready > 0 {
		l.call()
	}
}

// replacements is how many workers may begin for each one that waits for a silent topic. With more
// than one, many topics that fall silent together are soon found out, even by few workers.
const replacements = 4

// staff returns how many workers there may be: those that wait for topics which do not answer, or
// have not answered yet, do not count.
func (l *Ledger) staff(now time.Time) int {
	n := l.Workers
	for _, t := range l.topics {
		switch {
		case t.silent(now):
			n += replacements * t.out
		case !t.proven:
			n += t.out
		}
	}
	return n
}
