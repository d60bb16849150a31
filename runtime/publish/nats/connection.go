package outboxnats

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go"
)

// watch tells the publishes that are under way when the connection is lost: the client itself would wait for an answer across a
// reconnect, which never comes. They share a listener, since the client spends more on each the more there are.
type watch struct {
	mu      sync.Mutex
	current *listener
}

type listener struct {
	users int
	lost  context.Context // ends with the connection, or with the last user
	end   func()
}

// whileConnected returns a context that ends with ctx, or with the connection.
func (w *watch) whileConnected(ctx context.Context, nc *nats.Conn) (connected context.Context, release func()) {
	l := w.join(nc)
	connected, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.lost, func() { cancel(nats.ErrDisconnected) })
	return connected, func() {
		stop()
		cancel(nil)
		w.leave(l)
	}
}

func (w *watch) join(nc *nats.Conn) *listener {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current == nil || w.current.lost.Err() != nil {
		w.current = listen(nc)
	}
	w.current.users++
	return w.current
}

func (w *watch) leave(l *listener) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.users--; l.users == 0 {
		l.end()
	}
}

func listen(nc *nats.Conn) *listener {
	lost, lose := context.WithCancel(context.Background())
	changed := nc.StatusChanged(nats.DISCONNECTED, nats.RECONNECTING, nats.CLOSED)
	go func() {
		select {
		case <-changed:
			lose()
		case <-lost.Done():
		}
	}()
	return &listener{lost: lost, end: func() {
		lose()
		nc.RemoveStatusListener(changed)
	}}
}
