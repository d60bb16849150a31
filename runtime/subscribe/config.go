package subscribe

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Config configures a Subscriber. The zero value of a field selects its default.
//
// It has no MaxAttempts: a subscriber never gives up on a message.
type Config struct {
	// Concurrency is how many messages are handled at a time. Defaults to 16.
	Concurrency int
	// MinRetryDelay and MaxRetryDelay bound the delay before a message is delivered again. It is
	// random, up to a bound that begins with MinRetryDelay and doubles with each delivery until
	// MaxRetryDelay. They default to 1 s and 5 min.
	MinRetryDelay, MaxRetryDelay time.Duration
	// HandleTimeout is how long a handler may take before its context ends, so that one that hangs
	// gives its message back. Defaults to 5 min.
	HandleTimeout time.Duration
	// DrainTimeout is how long Run waits for handlers once its context has ended, before it ends
	// the handlers' contexts, too. Defaults to 30 s.
	DrainTimeout time.Duration
	// WaitForSchema has messages handed back to the broker while a migration is missing that the
	// inbox needs, instead of ending Run with an error that wraps outbox.ErrMigrationMissing: for
	// deploys that start the consumer beside the migrations.
	WaitForSchema bool
	// Logger receives a line for each message that was not handled, and nothing of a payload or a
	// key. Defaults to slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Concurrency = cmp.Or(c.Concurrency, 16)
	c.MinRetryDelay = cmp.Or(c.MinRetryDelay, time.Second)
	c.MaxRetryDelay = cmp.Or(c.MaxRetryDelay, max(c.MinRetryDelay, 5*time.Minute))
	c.HandleTimeout = cmp.Or(c.HandleTimeout, 5*time.Minute)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, 30*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

func (c Config) validate() error {
	var errs []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("subscribe: config: "+format, args...))
		}
	}
	refuse(c.Concurrency < 0, "Concurrency is %d, at least 1 is needed", c.Concurrency)
	refuse(c.MinRetryDelay < 0, "MinRetryDelay is %v, which is negative", c.MinRetryDelay)
	refuse(c.MaxRetryDelay < c.MinRetryDelay,
		"MaxRetryDelay is %v, which is below a MinRetryDelay of %v",
		c.MaxRetryDelay, c.MinRetryDelay)
	refuse(c.HandleTimeout < 0, "HandleTimeout is %v, which is negative", c.HandleTimeout)
	refuse(c.DrainTimeout < 0, "DrainTimeout is %v, which is negative", c.DrainTimeout)
	return errors.Join(errs...)
}
