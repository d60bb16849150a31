package outbox

import (
	"testing"
	"testing/synctest"
	"time"
)

// pausing is a pause with bells to ring, and how long it waits.
type pausing struct {
	pause
	bell, rings, progress chan struct{}
}

func newPausing() *pausing {
	p := &pausing{bell: make(chan struct{}, 1), rings: make(chan struct{}, 1),
		progress: make(chan struct{}, 1)}
	p.pause = pause{poll: minPoll, maxPoll: time.Second, bell: p.bell, rings: p.rings,
		progress: p.progress}
	return p
}

func (p *pausing) waits(t *testing.T) time.Duration {
	began := time.Now()
	p.wait(t.Context())
	return time.Since(began)
}

// reads counts the reads that find nothing until there is a pause.
func (p *pausing) reads() (n int) {
	for n = 1; p.again(); n++ {
	}
	return n
}

func TestPausesGrowUpToThePollInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPausing()
		for want := minPoll; want < time.Second; want *= 2 {
			if got := p.waits(t); got != want || p.reads() != 1 {
				t.Fatalf("got a pause of %v, want %v and one read behind it", got, want)
			}
		}
		if got := p.waits(t); got != time.Second {
			t.Fatalf("got a pause of %v, want a second", got)
		}
		p.found()
		if got := p.waits(t); got != minPoll {
			t.Fatalf("got a pause of %v after something was found, want %v", got, minPoll)
		}
	})
}

func TestAnIsolatedWakeUpIsFollowedByAFewReadsWithoutAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, channel := range []func(*pausing) chan struct{}{
			func(p *pausing) chan struct{} { return p.bell },
			func(p *pausing) chan struct{} { return p.rings },
		} {
			p := newPausing()
			p.poll = time.Second
			time.AfterFunc(100*time.Millisecond, func() { channel(p) <- struct{}{} })
			if got := p.waits(t); got != 100*time.Millisecond {
				t.Fatalf("got a pause of %v, want it to end with the ring", got)
			}
			if got := p.reads(); got != spinReads {
				t.Fatalf("got %d reads, want %d", got, spinReads)
			}
			if got := p.waits(t); got != minPoll {
				t.Fatalf("got a pause of %v behind them, want %v", got, minPoll)
			}
			if got := p.reads(); got != 1 {
				t.Fatalf("got %d reads, want one", got)
			}
		}
	})
}

func TestWakeUpsInQuickSuccessionKeepReadsAtADistance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPausing()
		go func() {
			for range 10_000 { // for one second
				notify(p.bell)
				time.Sleep(100 * time.Microsecond)
			}
		}()
		reads, began := 0, time.Now()
		for time.Since(began) < time.Second {
			p.wait(t.Context())
			reads += p.reads()
		}
		if limit := int(time.Second/minPoll) + spinReads; reads > limit {
			t.Errorf("got %d reads in a second, want %d at most", reads, limit)
		}
	})
}

// TestAWakeUpDuringTheReadsIsNotIsolated is about a wake-up that waits in its channel until the
// reads have ended.
func TestAWakeUpDuringTheReadsIsNotIsolated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPausing()
		p.bell <- struct{}{}
		p.wait(t.Context())
		time.Sleep(3 * time.Millisecond) // as long as the reads take
		p.bell <- struct{}{}
		p.reads()
		if got := p.waits(t); got != minPoll {
			t.Fatalf("got a pause of %v, want %v", got, minPoll)
		}
		if got := p.reads(); got != 1 {
			t.Fatalf("got %d reads, want one", got)
		}
	})
}

func TestProgressEndsAPauseAfterTheLeastDistance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPausing()
		p.poll = time.Second
		p.progress <- struct{}{}
		if got := p.waits(t); got != minPoll {
			t.Fatalf("got a pause of %v, want %v", got, minPoll)
		}
	})
}
