package outboxnats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// watch ends the publishes that are under way when the connection is lost: the client itself would
// wait across a reconnect for an answer that never comes. They share a listener, since the client
// spends more on each listener the more there are.
type watch struct {
	mu      sync.Mutex
	current *listener
	waiting map[string]map[*publish]struct{} // the publishes under way, by subject
}

// publish is one that is under way.
type publish struct{ cancel context.CancelCauseFunc }

type listener struct {
	users int
	lost  context.Context // ends with the connection, or with the last user
	end   func()
}

// whileConnected returns a context that ends with ctx, with the connection, or when the server
// denies the subject.
func (w *watch) whileConnected(ctx context.Context, nc *nats.Conn, subject string) (
	connected context.Context, release func(),
) {
	connected, cancel := context.WithCancelCause(ctx)
	p := &publish{cancel}
	l := w.join(nc, subject, p)
	stop := context.AfterFunc(l.lost, func() { cancel(nats.ErrDisconnected) })
	return connected, func() {
		stop()
		cancel(nil)
		w.leave(l, subject, p)
	}
}

// denied ends the publishes to a subject that the server does not permit. It says so beside the
// connection, and answers none of them.
func (w *watch) denied(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	_, rest, _ := strings.Cut(err.Error(), `Publish to "`)
	subject, _, found := strings.Cut(rest, `"`)
	if !found {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := range w.waiting[subject] {
		p.cancel(fmt.Errorf("not permitted to publish to subject %q: %w", subject, err))
	}
}

func (w *watch) join(nc *nats.Conn, subject string, p *publish) *listener {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current == nil || w.current.lost.Err() != nil {
		w.current = listen(nc)
	}
	w.current.users++
	if w.waiting == nil {
		w.waiting = map[string]map[*publish]struct{}{}
	}
	if w.waiting[subject] == nil {
		w.waiting[subject] = map[*publish]struct{}{}
	}
	w.waiting[subject][p] = struct{}{}
	return w.current
}

func (w *watch) leave(l *listener, subject string, p *publish) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiting[subject], p)
	if len(w.waiting[subject]) == 0 {
		delete(w.waiting, subject)
	}
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
