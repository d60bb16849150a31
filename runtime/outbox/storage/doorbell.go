package storage

import "sync"

// Doorbell wakes whoever waits for events. Ringing it never blocks, costs next to nothing if nobody
// waits, and promises nothing: polling finds what a lost ring would have announced. The zero value
// is ready to use.
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
