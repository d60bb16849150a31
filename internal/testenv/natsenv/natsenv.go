// Package natsenv gives tests and the demo a NATS server with JetStream: the real server, inside
// the process, on a free loopback port. It can be taken down and brought back on the same port,
// with what its streams hold.
package natsenv

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/outboxgen/outboxgen/internal/testenv/tempdir"
)

const (
	host         = "127.0.0.1"
	startTimeout = 2 * time.Minute // a limit for a machine that is busy
)

// Config says what server [Start] brings up. The zero value is ready to use.
type Config struct {
	// StoreDir keeps the streams, and is left in place at the end. Defaults to a temporary folder,
	// removed by [Server.Close].
	StoreDir string
}

// Server is a NATS server inside this process. Its methods may be called concurrently.
type Server struct {
	store string
	temp  *tempdir.Dir // holds the store, unless the caller named one

	mu      sync.Mutex
	port    int
	running *server.Server // nil while stopped
}

// New returns a server of the test's own, closed when the test ends.
func New(t testing.TB) *Server {
	t.Helper()
	s, err := Start(Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Start brings up a server, ready for clients.
func Start(cfg Config) (*Server, error) {
	s := &Server{store: cfg.StoreDir, port: server.RANDOM_PORT}
	if s.store == "" {
		temp, err := tempdir.New("outboxgen-nats-")
		if err != nil {
			return nil, fmt.Errorf("natsenv: %w", err)
		}
		s.store, s.temp = temp.Join("store"), temp
	}
	if err := s.Restart(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// URL is where clients connect. It stays the same when the server comes back.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "nats://" + s.address()
}

// Stop takes the server down: its clients lose their connections and get no new ones. The streams
// are kept.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		s.running.Shutdown()
		s.running.WaitForShutdown()
		s.running = nil
	}
}

// Restart brings a stopped server back on the same port. One that is running is left alone.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		return nil
	}
	if err := s.checkPort(); err != nil {
		return err
	}
	running, err := server.NewServer(&server.Options{
		Host: host, Port: s.port, JetStream: true, StoreDir: s.store, NoLog: true, NoSigs: true,
	})
	if err != nil {
		return fmt.Errorf("natsenv: %w", err)
	}
	go running.Start()
	if !running.ReadyForConnections(startTimeout) {
		running.Shutdown()
		return fmt.Errorf("natsenv: the server was not ready within %s; its streams are in %s",
			startTimeout, s.store)
	}
	s.running = running
	s.port = running.Addr().(*net.TCPAddr).Port
	return nil
}

// Close stops the server for good and removes its temporary folder.
func (s *Server) Close() error {
	s.Stop()
	if s.temp == nil {
		return nil
	}
	return s.temp.Remove()
}

// checkPort says what is wrong while it can be said: the server itself only fails to become ready.
func (s *Server) checkPort() error {
	if s.port == server.RANDOM_PORT {
		return nil
	}
	l, err := net.Listen("tcp", s.address())
	if err != nil {
		return fmt.Errorf("natsenv: another program took the server's port while it was down: %w",
			err)
	}
	return l.Close()
}

func (s *Server) address() string { return net.JoinHostPort(host, strconv.Itoa(s.port)) }
