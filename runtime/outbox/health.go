package outbox

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox/internal/ledger"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// health logs when one of the relay's tasks begins to fail and when it works again: two lines for
// an outage, however many attempts fall into it.
type health struct {
	logger *slog.Logger

	mu      sync.Mutex
	failing map[string]time.Time // since when, by task
}

func newHealth(logger *slog.Logger) *health {
	return &health{logger: logger, failing: map[string]time.Time{}}
}

// report notes the result of an attempt at a task. It ignores attempts that ended because ctx did.
func (h *health) report(ctx context.Context, task string, err error) {
	if ctx.Err() != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	since, failing := h.failing[task]
	switch {
	case err != nil && !failing:
		h.failing[task] = time.Now()
		h.logger.Warn("outbox: "+task+" fails and is retried until it works", "error", err)
	case err == nil && failing:
		delete(h.failing, task)
		h.logger.Info("outbox: "+task+" works again", "after",
			time.Since(since).Round(time.Millisecond))
	}
}

// bounded calls f with a context that ends after limit. If f does not return in time, its
// connection may be broken without an error, as happens after a failover, and others may be, too.
// The store then closes its connections.
func bounded(
	ctx context.Context, store storage.Store, limit time.Duration,
	f func(ctx context.Context) error,
) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := f(limited)
	if err != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		reset, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		if _, failed := store.Reset(reset, storage.ResetParams{}); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// The tasks of a relay, as its log names them.
const (
	joining  = "joining the relays"
	renewing = "renewing the lease"
	reading  = "reading events"
	settling = "settling events"
	// The database refuses to settle this event, so it is settled apart from the others.
	settlingOne = "settling a single event"
	listening   = "listening for other processes (polling carries on)"
	tidying     = "maintenance of the tables"
	counting    = "counting the backlog"
)

// logTopic logs that the circuit breaker of a topic has opened or closed.
func logTopic(logger *slog.Logger, c ledger.TopicChange) {
	switch {
	case c.GaveUp:
		logger.Error("outbox: the publisher is closed for good: nothing is published until the "+
			"process "+
			"restarts", "error", c.Err)
	case c.Err != nil:
		logger.Warn("outbox: a topic cannot be reached: its events wait, and are tried one at "+
			"a time",
			"topic", c.Topic, "error", c.Err, "try at least every", ledger.ProbeInterval)
	case c.Gone:
		logger.Info("outbox: no event is pending any more for a topic that could not be reached",
			"topic", c.Topic, "after", c.After)
	default:
		logger.Info("outbox: a topic can be reached again", "topic", c.Topic, "after", c.After)
	}
}
