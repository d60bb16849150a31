package outbox

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

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

// report notes how an attempt at a task ended. Attempts that end with ctx say nothing.
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
		h.logger.Warn("outbox: "+task+" fails, and is tried again until it works", "error", err)
	case err == nil && failing:
		delete(h.failing, task)
		h.logger.Info("outbox: "+task+" works again", "after",
			time.Since(since).Round(time.Millisecond))
	}
}

// bounded calls f with a context that ends after limit. If f does not return in time, the
// connection that it used may be dead without knowing it, as after a failover, and others with it:
// the store gives its connections up.
func bounded(
	ctx context.Context, store storage.Store, limit time.Duration, f func(ctx context.Context) error,
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
