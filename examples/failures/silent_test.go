package failures_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// In the tests of this file connections fall silent, as in a failover behind one address: what is
// sent is lost, without an error.

// silentWorld returns a world, and a pool whose connections go through a gateway. The pool pings
// each connection before it hands it out, which then never returns either.
func silentWorld(t *testing.T) (*world, *gateway, *pgxpool.Pool) {
	t.Helper()
	w := newWorld(t)
	way := w.gateway(w.url)
	pool := connect(t, way.url, func(c *pgxpool.Config) {
		c.MaxConns, c.MinConns = 10, 6 // as in a pool that is shared with the application
		c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return true }
	})
	t.Cleanup(way.close) // before the pool is closed, which would wait for silent connections
	w.eventually("the pool is full", func() bool { return pool.Stat().IdleConns() >= 6 })
	return w, way, pool
}

// brief returns a relay's configuration with time limits that are short enough for a test to wait
// for.
func brief() outbox.Config {
	c := quick()
	c.Lease, c.PublishTimeout = 3*time.Second, time.Second
	return c
}

func TestTheRelayOutlastsConnectionsThatFallSilent(t *testing.T) {
	t.Parallel()
	w, way, pool := silentWorld(t)
	recording := &outboxtest.RecordingPublisher{}
	relay, _ := w.run(events.NewStore(pool), recording, brief())
	w.eventually("it owns all shards, and listens",
		func() bool { return relay.Stats().Shards == 16 && relay.Stats().Listening })
	for n := range 3 {
		way.silence()
		w.enqueue(thing("a", n))
		w.published(recording, n+1)
		w.eventually("it is settled, and all shards are owned", func() bool {
			return w.pending() == 0 && relay.Stats().Shards == 16
		})
	}
	w.eventually("it listens again", func() bool { return relay.Stats().Listening })
}

// TestARelayEndsOnSilentConnections shows that Run returns, with an error that says that the shards
// become free only later.
func TestARelayEndsOnSilentConnections(t *testing.T) {
	t.Parallel()
	w, way, pool := silentWorld(t)
	gate := &gated{next: &outboxtest.RecordingPublisher{}}
	relay, err := outbox.NewRelay(events.NewStore(pool), gate, brief())
	w.must(err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- relay.Run(ctx) }()
	w.eventually("it owns all shards", func() bool { return relay.Stats().Shards == 16 })
	gate.close()
	w.enqueue(manyThings(30)...)
	w.eventually("events are in flight", func() bool { return relay.Stats().InFlight == 30 })
	way.silence()
	cancel()
	gate.open()
	select {
	case err := <-ended:
		t.Logf("Run: %v", err)
	case <-time.After(patience):
		t.Fatal("Run does not return")
	}
}

// TestListeningEndsInTime calls Listen while one of its steps never completes, each step in turn.
func TestListeningEndsInTime(t *testing.T) {
	t.Parallel()
	w, way, pool := silentWorld(t)
	way.silence()
	ended := make(chan error, 1)
	go func() {
		nothing := storage.ListenParams{Ready: func() {}, Ring: func() {}}
		_, err := events.NewStore(pool).Listen(t.Context(), nothing)
		ended <- err
	}()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("it listens on a connection that is dead")
		}
	case <-time.After(patience):
		t.Fatal("the listener waits for ever for a connection")
	}
	w.must(w.pool.Ping(t.Context()))
}

// TestListeningSaysWhatIsTrue has notifications dropped and nothing else, as some poolers do.
func TestListeningSaysWhatIsTrue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	way := w.gateway(w.url)
	for name, maxConns := range map[string]int32{"a pool of one": 1, "a pool of two": 2} {
		pool := connect(t, way.url, func(c *pgxpool.Config) { c.MaxConns = maxConns })
		relay, stop := w.run(events.NewStore(pool), &outboxtest.RecordingPublisher{}, quick())
		listening := func() bool { return relay.Stats().Listening }
		w.eventually(name+": it listens", listening)
		way.swallowNotifications(true)
		w.eventually(name+": it knows that it hears nothing", func() bool { return !listening() })
		w.enqueue(thing("a", 1))
		w.eventually(name+": polling carries on",
			func() bool { return relay.Stats().Published == 1 })
		way.swallowNotifications(false)
		w.eventually(name+": it listens again", listening)
		stop()
	}
}
