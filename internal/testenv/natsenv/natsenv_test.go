package natsenv_test

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/outboxgen/outboxgen/internal/testenv/natsenv"
)

func connect(t *testing.T, url string) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func TestStreamsSurviveARestartOnTheSamePort(t *testing.T) {
	t.Parallel()
	server := natsenv.New(t)
	url := server.URL()
	js := connect(t, url)
	if _, err := js.CreateStream(t.Context(),
		jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "s.one", []byte("1")); err != nil {
		t.Fatal(err)
	}

	server.Stop()
	server.Stop()
	if nc, err := nats.Connect(url); err == nil {
		nc.Close()
		t.Fatal("a stopped server takes connections")
	}

	for range 2 { // the second time, it is running
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	if got := server.URL(); got != url {
		t.Errorf("URL after the restart is %s, want %s", got, url)
	}
	stream, err := connect(t, url).Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	if got := stream.CachedInfo().State.Msgs; got != 1 {
		t.Errorf("%d messages after the restart, want 1", got)
	}
}

func TestServersAreSeparate(t *testing.T) {
	t.Parallel()
	one, two := natsenv.New(t), natsenv.New(t)
	if one.URL() == two.URL() {
		t.Fatalf("both servers are at %s", one.URL())
	}
	js := connect(t, one.URL())
	if _, err := js.CreateStream(t.Context(),
		jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, two.URL()).Stream(t.Context(), "S"); err == nil {
		t.Error("a stream of one server is in the other")
	}
}

func TestRestartSaysThatThePortIsTaken(t *testing.T) {
	t.Parallel()
	server := natsenv.New(t)
	server.Stop()
	l, err := net.Listen("tcp", strings.TrimPrefix(server.URL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := server.Restart(); err == nil ||
		!strings.Contains(err.Error(), "took the server's port") {
		t.Errorf("error %v, want one that says that the port is taken", err)
	}
}

func TestCloseRemovesOnlyATemporaryStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, err := natsenv.Start(natsenv.Config{StoreDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("the caller's store is gone: %v", err)
	}
}
