package outbox

import (
	"context"
	"time"
)

const (
	minPoll = time.Millisecond
	// isolatedAfter is how long no other wake-up has come before one that counts as isolated.
	isolatedAfter = 2 * time.Millisecond
	// spinReads is the number of reads without a pause that follow an isolated wake-up.
	spinReads = 8
)

// pause is the wait between two reads if the first one has emptied the outbox. It doubles from
// minPoll up to maxPoll as long as reads find nothing, and ends early when the reader is woken; but
// at least minPoll lies between reads, so that events that are committed together are read
// together.
//
// An enqueue wakes the reader shortly before its transaction commits, earlier by less than a timer
// can measure. So after an isolated wake-up the reader repeats its read up to spinReads times
// without a pause, until it has found something. If wake-ups come in quick succession it does not:
// the service is busy and needs the processors itself.
type pause struct {
	poll, maxPoll time.Duration
	lastWake      time.Time // of the last wake-up, or when the reads after it ended
	spinsLeft     int       // reads without a pause that are left, the next one included
	// The pause ends at a ring of this process or of another one, and when the ledger has room.
	bell, rings, progress <-chan struct{}
}

// found notes that the last read has found something.
func (p *pause) found() { p.poll = minPoll }

// again reports whether a read that found nothing is to be repeated at once.
func (p *pause) again() bool {
	if p.spinsLeft <= 1 {
		return false
	}
	p.spinsLeft--
	return true
}

// wait returns when the next read is due, or ctx ends.
func (p *pause) wait(ctx context.Context) {
	now := time.Now()
	if p.spinsLeft > 0 {
		p.spinsLeft, p.lastWake = 0, now // wake-ups during the reads are not isolated
	}
	soonest := now.Add(minPoll)
	due := now.Add(p.poll)
	for {
		timer := time.NewTimer(time.Until(due))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			p.poll = min(2*p.poll, p.maxPoll)
			return
		case <-p.bell:
			p.wake(time.Now())
			due = soonest
		case <-p.rings:
			p.wake(time.Now())
			due = soonest
		case <-p.progress:
			due = soonest
		}
		timer.Stop()
		if p.spinsLeft > 0 {
			return
		}
	}
}

// wake notes a wake-up. One that comes back through the database soon after this process sent it
// does not count as isolated.
func (p *pause) wake(now time.Time) {
	if now.Sub(p.lastWake) > isolatedAfter {
		p.spinsLeft = spinReads
	}
	p.poll, p.lastWake = minPoll, now
}
