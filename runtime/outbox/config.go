package outbox

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"
)

// Config configures a relay. The zero value of a field selects its default.
type Config struct {
	// Lease is how long the relay counts as alive after a heartbeat; it sends one every third of
	// that. When a relay is killed, its shards wait for the rest of its lease. Defaults to 30 s; at
	// least 100 ms.
	Lease time.Duration
	// PublishTimeout is how long one publish may take. At most half of Lease. Defaults to 10 s, or
	// to a third of Lease if that is less.
	PublishTimeout time.Duration
	// Concurrency is how many calls of the Publisher may be under way at once. Those of a topic
	// that does not answer for much longer than usual do not count, so that others do not wait for
	// it. Defaults to 64, or to 4 if it is a BatchPublisher.
	Concurrency int
	// MaxInFlight is how many events the relay holds in memory: read, and not yet settled. Defaults
	// to 4,096; at least 64.
	MaxInFlight int
	// MaxInFlightBytes bounds the payloads of those. One event of each shard is read even if it is
	// larger. Defaults to 16 MiB.
	MaxInFlightBytes int
	// PollInterval is how long the relay sleeps at most before it looks for events again. It looks
	// sooner after an event, and when an enqueue wakes it. Defaults to 1 s.
	PollInterval time.Duration
	// MaxAttempts is how many attempts the broker may refuse before the event becomes a dead
	// letter. Attempts at which the broker could not be reached do not count. Defaults to 12. With
	// Unlimited an event is tried until it is published, and the broker's refusals make no dead
	// letters except those marked as Permanent.
	MaxAttempts int
	// MinRetryDelay and MaxRetryDelay bound the delay before the next attempt at an event that the
	// broker refused. It is random, below a bound that is MinRetryDelay at first and doubles with
	// each attempt until it is MaxRetryDelay. They default to 1 s and 15 min.
	MinRetryDelay, MaxRetryDelay time.Duration
	// DrainTimeout is how long Run waits, once its context has ended, for publishes under way and
	// for recording their results. Then it cancels them; events that may have been published
	// without being recorded are published again. Defaults to PublishTimeout and, in addition, the
	// greater of PublishTimeout and a third of Lease.
	DrainTimeout time.Duration
	// WaitForSchema has Run wait for a migration that is missing, and log once which one, instead
	// of returning an error that wraps ErrMigrationMissing: for deploys that start the relay beside
	// the migrations. It looks again after 15 s at most.
	WaitForSchema bool
	// Logger receives what an operator should know: dead letters, lost leases, an unreachable
	// broker or database. Nothing of a payload or a key. Defaults to slog.Default().
	Logger *slog.Logger
}

// Unlimited is the value of Config.MaxAttempts for relays that never give up on an event.
const Unlimited = -1

// longestLease is short enough for the end of a lease to fit a time.Duration.
const longestLease = 365 * 24 * time.Hour

func (c Config) withDefaults(publisher Publisher) Config {
	setDefault(&c.Lease, 30*time.Second)
	setDefault(&c.PublishTimeout, min(10*time.Second, c.Lease/3))
	if _, ok := publisher.(BatchPublisher); ok {
		setDefault(&c.Concurrency, 4)
	}
	setDefault(&c.Concurrency, 64)
	setDefault(&c.MaxInFlight, 4096)
	setDefault(&c.MaxInFlightBytes, 16<<20)
	setDefault(&c.PollInterval, time.Second)
	setDefault(&c.MaxAttempts, 12)
	setDefault(&c.MinRetryDelay, time.Second)
	setDefault(&c.MaxRetryDelay, max(c.MinRetryDelay, 15*time.Minute))
	setDefault(&c.DrainTimeout, c.PublishTimeout+c.grace())
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// grace is how long settling may take at the end, and in addition how long giving the shards back
// may take.
func (c Config) grace() time.Duration { return max(c.PublishTimeout, c.Lease/3) }

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (c Config) validate() error {
	var errs []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("outbox: config: "+format, args...))
		}
	}
	refuse(c.Lease < 100*time.Millisecond, "Lease is %v, at least 100ms is needed", c.Lease)
	refuse(c.Lease > longestLease, "Lease is %v, at most %v is allowed", c.Lease, longestLease)
	refuse(c.PublishTimeout < 0 || c.PublishTimeout > c.Lease/2,
		"PublishTimeout is %v, with a Lease of %v: at most half of that is allowed",
		c.PublishTimeout, c.Lease)
	refuse(c.Concurrency < 0, "Concurrency is %d", c.Concurrency)
	refuse(c.MaxInFlight < 64, "MaxInFlight is %d, at least 64 is needed", c.MaxInFlight)
	refuse(c.MaxInFlightBytes < 0, "MaxInFlightBytes is %d", c.MaxInFlightBytes)
	refuse(c.PollInterval < 0, "PollInterval is %v", c.PollInterval)
	refuse(c.MaxAttempts < Unlimited || c.MaxAttempts > math.MaxInt32,
		"MaxAttempts is %d; give at most %d, or outbox.Unlimited", c.MaxAttempts, math.MaxInt32)
	refuse(c.MinRetryDelay < 0 || c.MaxRetryDelay < c.MinRetryDelay,
		"MinRetryDelay is %v and MaxRetryDelay is %v; give two that are not negative, the "+
			"lesser one first",
		c.MinRetryDelay, c.MaxRetryDelay)
	refuse(c.DrainTimeout < 0, "DrainTimeout is %v, which is negative", c.DrainTimeout)
	return errors.Join(errs...)
}
