package failures_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// The tests in this file show what the relay reports to an operator.

// failing is a store some of whose methods fail for a while.
type failing struct {
	*outboxtest.MemStore
	mu   sync.Mutex
	with map[string]error // what each method returns
}

// set makes a method fail from now on, or work again if err is nil.
func (s *failing) set(method string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.with == nil {
		s.with = map[string]error{}
	}
	s.with[method] = err
}

func (s *failing) err(method string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.with[method]
}

func (s *failing) Join(ctx context.Context, p storage.JoinParams) (storage.JoinResult, error) {
	if err := s.err("Join"); err != nil {
		return storage.JoinResult{}, err
	}
	return s.MemStore.Join(ctx, p)
}

func (s *failing) Renew(ctx context.Context, p storage.RenewParams) (storage.RenewResult, error) {
	if err := s.err("Renew"); err != nil {
		return storage.RenewResult{}, err
	}
	return s.MemStore.Renew(ctx, p)
}

func (s *failing) Leave(ctx context.Context, p storage.LeaveParams) (storage.LeaveResult, error) {
	if err := s.err("Leave"); err != nil {
		return storage.LeaveResult{}, err
	}
	return s.MemStore.Leave(ctx, p)
}

func (s *failing) Read(ctx context.Context, p storage.ReadParams) (storage.ReadResult, error) {
	if err := s.err("Read"); err != nil {
		return storage.ReadResult{}, err
	}
	return s.MemStore.Read(ctx, p)
}

func (s *failing) Settle(
	ctx context.Context, p storage.SettleParams,
) (storage.SettleResult, error) {
	if err := s.err("Settle"); err != nil {
		return storage.SettleResult{}, err
	}
	return s.MemStore.Settle(ctx, p)
}

func (s *failing) Maintain(
	context.Context, storage.MaintainParams,
) (storage.MaintainResult, error) {
	return storage.MaintainResult{}, s.err("Maintain")
}

// Listen implements storage.Store. It reports once a second that it listens.
func (s *failing) Listen(
	ctx context.Context, p storage.ListenParams,
) (storage.ListenResult, error) {
	for {
		if err := errors.Join(s.err("Listen"), ctx.Err()); err != nil {
			return storage.ListenResult{}, err
		}
		p.Ready()
		time.Sleep(time.Second)
	}
}

// Notify implements storage.Store.
func (s *failing) Notify(context.Context, storage.NotifyParams) (storage.NotifyResult, error) {
	return storage.NotifyResult{}, s.err("Notify")
}

// logbook collects log records.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logbook) count(part string) int { return strings.Count(l.String(), part) }

func (l *logbook) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// TestAnOutageIsTwoLinesInTheLog has one of the relay's tasks fail for ten minutes, while events
// are enqueued.
func TestAnOutageIsTwoLinesInTheLog(t *testing.T) {
	for method, task := range map[string]string{
		"Read": "reading events", "Settle": "settling events",
		"Listen": "listening for other processes", "Maintain": "maintenance",
	} {
		t.Run(method, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				memory, _ := memory(t)
				store := &failing{MemStore: memory}
				w := &world{T: t}
				var log logbook
				_, stop := w.run(store, &outboxtest.RecordingPublisher{},
					outbox.Config{Logger: log.logger()})
				w.enqueueInMemory(memory, time.Minute)
				w.equal("log", log.String(), "")
				for n := range 2 {
					store.set(method, errors.New("trouble"))
					w.enqueueInMemory(memory, 10*time.Minute)
					w.equal("lines that it fails", log.count(task)-n*2, 1)
					store.set(method, nil)
					w.enqueueInMemory(memory, 10*time.Minute)
					w.equal("lines that it fails, and works again", log.count(task)-n*2, 2)
				}
				stop()
				w.equal("pending", len(memory.Pending()), 0)
				w.equal("restarts", log.count("restarts"), 0)
				w.equal("keys and payloads in the log", log.count("confidential"), 0)
				if n := log.count("\n"); n > 8 {
					t.Errorf("%d lines were logged:\n%s", n, log.String())
				}
			})
		})
	}
}

// enqueueInMemory commits one event a second until d has passed.
func (w *world) enqueueInMemory(store *outboxtest.MemStore, d time.Duration) {
	w.Helper()
	for n := range int(d / time.Second) {
		tx := store.Begin()
		_, err := tx.Enqueue(w.Context(),
			[]outbox.Event{outboxtest.Event{Entity: fmt.Sprint("confidential ", n%7), N: int64(n)}})
		w.must(errors.Join(err, tx.Commit()))
		time.Sleep(time.Second)
	}
}

// TestARelayThatCannotJoinSaysSoOnce has the database unreachable for an hour, and then reachable
// again.
func TestARelayThatCannotJoinSaysSoOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		memory, ids := memory(t, things(5, 5)...)
		store := &failing{MemStore: memory}
		for _, method := range []string{"Join", "Renew", "Leave", "Read"} {
			store.set(method, errors.New("connection refused"))
		}
		w := &world{T: t}
		var log logbook
		recording := &outboxtest.RecordingPublisher{}
		_, stop := w.run(store, recording, outbox.Config{Logger: log.logger()})
		time.Sleep(time.Hour)
		w.equal("lines", log.count("\n"), 1)
		for _, method := range []string{"Join", "Renew", "Leave", "Read"} {
			store.set(method, nil)
		}
		time.Sleep(time.Minute)
		stop()
		w.equal("lines", log.count("\n"), 2)
		w.equal("lines about joining", log.count("joining"), 2)
		w.once(recording.Messages(), len(ids))
	})
}

func TestRunReturnsWhatNoRetryMends(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		memory, _ := memory(t)
		store := &failing{MemStore: memory}
		store.set("Join", fmt.Errorf("%w: the tables are another service's", outbox.ErrUnusable))
		var log logbook
		relay, err := outbox.NewRelay(store, &outboxtest.RecordingPublisher{},
			outbox.Config{Logger: log.logger()})
		(&world{T: t}).must(err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := relay.Run(ctx); !errors.Is(err, outbox.ErrUnusable) {
			t.Errorf("Run: got %v, want what Join said", err)
		}
		(&world{T: t}).equal("log", log.String(), "")
	})
}

// TestRunReturnsWhatWentWrongWhileDraining stops a relay that cannot shut down cleanly.
func TestRunReturnsWhatWentWrongWhileDraining(t *testing.T) {
	for name, test := range map[string]struct {
		leave error
		lasts time.Duration // how long a publish takes, whatever its context says
		want  string
	}{
		"all goes well": {nil, 0, ""},
		"the shards cannot be given back": {
			errors.New("connection refused"), 0, "connection refused",
		},
		"a publish heeds no context":        {nil, time.Hour, "not drained in time"},
		"a publish ends when its time ends": {nil, 5 * time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				memory, _ := memory(t, things(3, 1)...)
				store := &failing{MemStore: memory}
				store.set("Leave", test.leave)
				var started atomic.Int64
				var log logbook
				relay, err := outbox.NewRelay(store,
					publisherFunc(func(context.Context, *outbox.Message) error {
						started.Add(1)
						time.Sleep(test.lasts)
						return nil
					}), outbox.Config{Logger: log.logger()})
				w := &world{T: t}
				w.must(err)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err = relay.Run(ctx)
				if err == nil && test.want != "" ||
					err != nil && (test.want == "" || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("Run: got %v, want %q", err, test.want)
				}
				w.equal("publishes started", started.Load(), 3)
				w.equal("restarts in the log", log.count("restarts"), 0)
			})
		})
	}
}
