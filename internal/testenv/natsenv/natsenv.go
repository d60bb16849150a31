// Package natsenv gives tests and the demo a NATS server with JetStream: the real server, inside
// the process, on a free loopback port. It can be stopped and restarted on the same port, with its
// streams.
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
	startTimeout = 2 * time.Minute // the limit on a busy machine
)

// Config configures the server that [Start] starts. The zero value is ready to use.
type Config struct {
	// StoreDir is the directory of the streams, which is not removed at the end. Defaults to a
	// temporary directory, which [Server.Close] removes.
	StoreDir string
}

// Server is a NATS server inside this process. Its methods may be called concurrently.
type Server struct {
	store string
	temp  *tempdir.Dir // has the store, unless the caller named a directory

	mu      sync.Mutex
	port    int
	running *server.Server // nil while stopped
}

// New returns a server of the test's own, which is closed when the test ends.
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

// Start starts a server, and returns once it is ready for clients.
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

// URL is where clients connect. It stays the same when the server is restarted.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "nats://" + s.address()
}

// Stop stops the server: its clients lose their connections and cannot connect again. The streams
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

// Restart starts a stopped server on the same port. It does nothing if the server is running.
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

// Close stops the server for good and removes its temporary directory.
func (s *Server) Close() error {
	s.Stop()
	if s.temp == nil {
		return nil
	}
	return s.temp.Remove()
}

// checkPort returns an error if the port is in use, since the server itself would only not become
// ready.
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
