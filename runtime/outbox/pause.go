package outbox

import (
	"context"
	"time"
)

const (
	pollMin   = time.Millisecond
	alone     = 2 * time.Millisecond // how long no other bell has rung before one that rings alone
	eagerness = 8                    // reads behind such a ring
)

// pause is what lies between two reads where the first has left nothing behind. It grows while nothing is found, up to a limit, and ends
// early when there is reason to look; but reads keep a distance, so that what is committed together is read together.
//
// A doorbell rings before its transaction commits, by less than a timer can measure. So behind a ring that came alone a few reads follow
// each other at once until one has found something. Rings in quick succession are a busy service's, which has better use for the
// processors.
type pause struct {
	poll, most            time.Duration
	rung                  time.Time // last, or when the reads behind it ended
	eager                 int       // reads that are left behind a ring, the next one among them; 0 once they have ended
	bell, rings, progress <-chan struct{}
}

// found notes that the last read has found something.
func (p *pause) found() { p.poll = pollMin }

// again reports whether a read that found nothing is to be followed by another one at once.
func (p *pause) again() bool {
	if p.eager <= 1 {
		return false
	}
	p.eager--
	return true
}

// wait returns when the next read is due.
func (p *pause) wait(ctx context.Context) {
	now := time.Now()
	if p.eager > 0 {
		p.eager, p.rung = 0, now // what rang meanwhile did not ring alone
	}
	soonest := now.Add(pollMin)
	due := now.Add(p.poll)
	for {
		timer := time.NewTimer(time.Until(due))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			p.poll = min(2*p.poll, p.most)
			return
		case <-p.bell:
			p.ring(time.Now())
			due = soonest
		case <-p.rings:
			p.ring(time.Now())
			due = soonest
		case <-p.progress:
			due = soonest
		}
		timer.Stop()
		if p.eager > 0 {
			return
		}
	}
}

func (p *pause) ring(now time.Time) {
	if now.Sub(p.rung) > alone { // that of another process echoes one's own
		p.eager = eagerness
	}
	p.poll, p.rung = pollMin, now
}
