package storage

import "sync"

// Doorbell wakes readers that wait for events. Ringing it never blocks, and costs next to nothing
// if no reader waits. Rings may be lost: polling finds the events then. The zero value is ready to
// use, and a Doorbell is safe for concurrent use.
type Doorbell struct {
	mu        sync.RWMutex
	listeners map[chan struct{}]struct{}
}

// Ring wakes all readers that wait. Enqueue functions ring before their transaction commits, so a
// reader has to read more than once.
func (d *Doorbell) Ring() {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for c := range d.listeners {
		select {
		case c <- struct{}{}:
		default: // an earlier ring is pending
		}
	}
}

// Wait returns a channel that receives a value after a ring; several rings in quick succession may
// yield one value. The caller must call stop when it no longer needs the channel.
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
