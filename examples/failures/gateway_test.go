package failures_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"sync"
)

// gateway forwards connections from a pool to a server, as a load balancer or a pooler does.
type gateway struct {
	w        *world
	url      string // of the database, through the gateway
	listener net.Listener

	mu     sync.Mutex
	target string
	links  map[*link]bool
	drops  bool // notifications are dropped
}

// link is a connection through the gateway.
type link struct {
	client, server net.Conn
	silent         bool
}

func (w *world) gateway(database string) *gateway {
	w.Helper()
	u, err := url.Parse(database)
	w.must(err)
	g := &gateway{w: w, target: u.Host, links: map[*link]bool{}}
	g.listener, err = net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	u.Host = g.listener.Addr().String()
	g.url = u.String()
	w.Cleanup(g.close)
	go g.accept()
	return g
}

func (g *gateway) accept() {
	for {
		client, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.mu.Lock()
		server, err := net.Dial("tcp", g.target)
		l := &link{client: client, server: server}
		if err != nil {
			_ = client.Close()
		} else {
			g.links[l] = true
			go g.copy(l, server, client)
			go g.copyMessages(l, client, server)
		}
		g.mu.Unlock()
	}
}

// copy forwards what a client sends.
func (g *gateway) copy(l *link, to io.Writer, from io.Reader) {
	defer g.end(l)
	b := make([]byte, 1<<16)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if g.passes(l, 0) {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
	}
}

// copyMessages forwards what a server sends, message by message: a type, and a length that includes
// itself.
func (g *gateway) copyMessages(l *link, to io.Writer, from io.Reader) {
	defer g.end(l)
	header := make([]byte, 5)
	for {
		if _, err := io.ReadFull(from, header); err != nil {
			return
		}
		message := make([]byte, 1+binary.BigEndian.Uint32(header[1:]))
		copy(message, header)
		if _, err := io.ReadFull(from, message[5:]); err != nil {
			return
		}
		if g.passes(l, header[0]) {
			if _, err := to.Write(message); err != nil {
				return
			}
		}
	}
}

const notification = 'A' // the message type NotificationResponse

func (g *gateway) passes(l *link, kind byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !l.silent && (kind != notification || !g.drops)
}

// end closes both ends of a link. If the link is silent, neither side is told.
func (g *gateway) end(l *link) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !l.silent {
		l.close()
		delete(g.links, l)
	}
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// silence drops, without an error, whatever is sent over the connections that exist now. New
// connections work.
func (g *gateway) silence() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for l := range g.links {
		l.silent = true
	}
}

// swallowNotifications sets whether notifications are dropped.
func (g *gateway) swallowNotifications(yes bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drops = yes
}

// lead closes all connections and forwards new ones to the server of another database.
func (g *gateway) lead(database string) {
	g.w.Helper()
	u, err := url.Parse(database)
	g.w.must(err)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.target = u.Host
	for l := range g.links {
		l.close()
		delete(g.links, l)
	}
}

func (g *gateway) close() {
	_ = g.listener.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	for l := range g.links {
		l.close()
	}
}
