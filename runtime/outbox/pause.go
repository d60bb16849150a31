package outbox

import (
	"context"
	"time"
)

// pause is what lies between two reads where the first has left nothing behind. It grows while nothing is found, up to a limit, and ends
// early when there is reason to look; but reads keep a distance, so that what is committed together is read together.
//
// A doorbell rings before its transaction commits, by less than a timer can measure. So behind a ring that came alone reads follow each
// other at once until they have found something. Rings in quick succession are a busy service's, which has better use for the processors.
type pause struct {
	poll, most            time.Duration
	rung                  time.Time // last
	until                 time.Time // a commit is expected
	bell, rings, progress <-chan struct{}
}

// found notes that the last read has found something.
func (p *pause) found() { p.poll, p.until = pollMin, time.Time{} }

// expectant reports whether a commit is expected, so that there is to be no pause.
func (p *pause) expectant() bool { return time.Now().Before(p.until) }

// wait returns when the next read is due.
func (p *pause) wait(ctx context.Context) {
	soonest := time.Now().Add(pollMin)
	due := soonest.Add(p.poll - pollMin)
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
		if p.expectant() {
			return
		}
	}
}

func (p *pause) ring(now time.Time) {
	if now.Sub(p.rung) > eagerness { // that of another process echoes one's own
		p.until = now.Add(eagerness)
	}
	p.poll, p.rung = pollMin, now
}
