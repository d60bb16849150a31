package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"strconv"
	"sync"
)

// link forwards the connections between a process and the broker. It can break when the process
// sends a given word: then nothing gets through in either direction, and neither side is told,
// until it is mended. What was under way by then is lost.
type link struct {
	broker   string // its address
	listener net.Listener
	ctx      context.Context
	running  sync.WaitGroup

	mu     sync.Mutex
	trap   *trap
	broken bool
	era    context.Context // ends when the link is mended, which closes the older connections
	endEra context.CancelFunc
}

// trap breaks the link when the process sends an operation that contains word.
type trap struct {
	word   []byte
	passes bool // the operation itself gets through
	sprung chan struct{}
}

// newLink opens a link that lasts until ctx ends. The process connects to the listener's address.
func newLink(ctx context.Context, broker string) (*link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{broker: broker, listener: listener, ctx: ctx}
	l.era, l.endEra = context.WithCancel(ctx)
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	l.running.Go(l.accept)
	return l, nil
}

func (l *link) url() string { return "nats://" + l.listener.Addr().String() }

// breakAfter breaks the link behind the next operation that contains word: the broker receives it,
// and its answer is lost.
func (l *link) breakAfter(word string) (sprung <-chan struct{}) { return l.set(word, true) }

// breakAt breaks the link before the next operation that contains word: the broker does not receive
// it.
func (l *link) breakAt(word string) (sprung <-chan struct{}) { return l.set(word, false) }

func (l *link) set(word string, passes bool) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trap = &trap{word: []byte(word), passes: passes, sprung: make(chan struct{})}
	return l.trap.sprung
}

// mend ends the broken connections and lets new ones through.
func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endEra()
	l.broken = false
	l.era, l.endEra = context.WithCancel(l.ctx)
}

func (l *link) accept() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.running.Go(func() { l.connect(conn) })
	}
}

func (l *link) connect(process net.Conn) {
	defer func() { _ = process.Close() }()
	for !l.whole() && l.ctx.Err() == nil {
		continue // the link has been mended
	}
	broker, err := net.Dial("tcp", l.broker)
	if err != nil {
		return
	}
	hangUp := func() { _, _ = process.Close(), broker.Close() }
	defer context.AfterFunc(l.currentEra(), hangUp)()
	var both sync.WaitGroup
	both.Go(func() { defer hangUp(); l.carryRequests(process, broker) })
	both.Go(func() { defer hangUp(); l.carryAnswers(broker, process) })
	both.Wait()
}

func (l *link) carryRequests(process io.Reader, broker io.Writer) {
	for r := bufio.NewReader(process); ; {
		operation, err := readOperation(r)
		if err != nil || !l.whole() {
			return
		}
		passes := !l.springs(operation)
		if passes {
			_, err = broker.Write(operation)
		}
		if err != nil || !l.whole() {
			return
		}
	}
}

func (l *link) carryAnswers(broker io.Reader, process io.Writer) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := broker.Read(buffer)
		if err != nil || !l.whole() {
			return
		}
		if _, err := process.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// springs reports whether the trap drops the operation.
func (l *link) springs(operation []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.trap
	if t == nil || !bytes.Contains(operation, t.word) {
		return false
	}
	l.trap, l.broken = nil, true
	close(t.sprung)
	return !t.passes
}

// whole reports whether the link works. If it does not, whole waits until it is mended.
func (l *link) whole() bool {
	l.mu.Lock()
	broken, era := l.broken, l.era
	l.mu.Unlock()
	if broken {
		<-era.Done()
	}
	return !broken
}

func (l *link) currentEra() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.era
}

// readOperation reads one operation of a client in the NATS protocol: a line and, for PUB and HPUB,
// a payload whose size ends the line.
func readOperation(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	fields := bytes.Fields(line)
	if err != nil || len(fields) == 0 || !bytes.HasSuffix(fields[0], []byte("PUB")) {
		return line, err
	}
	size, err := strconv.Atoi(string(fields[len(fields)-1]))
	if err != nil {
		return nil, err
	}
	payload := make([]byte, size+len("\r\n"))
	_, err = io.ReadFull(r, payload)
	return append(line, payload...), err
}
