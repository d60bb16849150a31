package outbox

import (
	"context"
	"sync"
	"time"
)

// Doorbell wakes whoever waits for events of a store. Ringing it never blocks, costs next to
// nothing if nobody waits, and promises nothing: polling finds the events whose ring was lost. The
// zero value is ready to use.
type Doorbell struct {
	mu        sync.RWMutex
	listeners map[chan struct{}]struct{}
}

// Ring wakes all who wait. Enqueue functions ring before their transaction commits, so a listener
// looks more than once.
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

// Wait returns a channel that receives after every ring, rings in quick succession counting as one,
// and a function that ends this.
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

// forwardInterval is how often wake-ups are forwarded to other processes at most.
const forwardInterval = 20 * time.Millisecond

const notifyTimeout = 5 * time.Second

// ForwardWakeups forwards the rings of store's doorbell to the relays that have another store, in
// this process or in others, until ctx ends. A process that enqueues and runs no relay on the same
// store calls it once, so that its events are published within milliseconds instead of at the
// relays' next poll; a relay does it by itself. Failures to notify are not reported: polling
// carries on.
func ForwardWakeups(ctx context.Context, store Store) {
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
		if !sleep(ctx, forwardInterval) {
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
