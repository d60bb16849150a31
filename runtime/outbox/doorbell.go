package outbox

import (
	"context"
	"sync"
	"time"
)

// Doorbell wakes whoever waits for events. Ringing it never blocks, costs next to nothing where nobody waits, and promises
// nothing: polling finds what a lost ring would have announced. The zero value is ready to use.
type Doorbell struct {
	mu        sync.RWMutex
	listeners map[chan struct{}]struct{}
}

// Ring wakes all who wait. Enqueue functions ring before their transaction commits, so a listener looks more than once.
func (d *Doorbell) Ring() {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for c := range d.listeners {
		select {
		case c <- struct{}{}:
		default: // it has been told, and has not looked yet
		}
	}
}

// Wait returns a channel that receives after every ring, rings in quick succession counting as one, and a function that
// ends this.
func (d *Doorbell) Wait() (rings <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.listeners == nil {
		d.listeners = map[chan struct{}]struct{}{}
	}
	d.listeners[c] = struct{}{}
	return c, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.listeners, c)
	}
}

// announceInterval is how often rings are passed on to other processes at most.
const announceInterval = 20 * time.Millisecond

const notifyTimeout = 5 * time.Second

// Announce passes this process's rings on to the relays of other processes, until ctx ends. A process that enqueues and runs no
// relay runs it once, so that its events are published within milliseconds instead of at the relays' next poll; a relay runs it
// by itself. Failures to notify are not reported: polling carries on.
func Announce(ctx context.Context, store Store) {
	listener, ok := store.(Listener)
	if !ok {
		return
	}
	rings, stop := store.Doorbell().Wait()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-rings:
		}
		_ = bounded(ctx, store, notifyTimeout, listener.Notify)
		if !sleep(ctx, announceInterval) {
			return
		}
	}
}

// sleep waits for d and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
