package scenario

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/outboxgen/outboxgen/bench/events"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/report"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// choice is a configuration of a relay.
type choice struct {
	name   string
	shards int           // over which keys are spread; 0 for the catalogue's number
	takes  time.Duration // how long a publish takes
	hot    float64       // the share of events on one key
	config outbox.Config
}

// choices shows the effect of a user's choices: shards, events in memory, publishes at once.
func choices(ctx context.Context, l *lab.Lab) (report.Result, error) {
	const broker = 2 * time.Millisecond
	list := []choice{
		{name: "as it comes"},
		{name: "1 shard", shards: 1},
		{name: "64 shards", shards: 64},
		{name: "256 shards", shards: 256},
		{name: "MaxInFlight 512", config: outbox.Config{MaxInFlight: 512}},
		{name: "MaxInFlight 16,384", config: outbox.Config{MaxInFlight: 16_384}},
		{
			name:   "a broker of 2 ms, Concurrency 16",
			takes:  broker,
			config: outbox.Config{Concurrency: 16},
		},
		{name: "a broker of 2 ms, Concurrency 64", takes: broker},
		{
			name:   "a broker of 2 ms, Concurrency 256",
			takes:  broker,
			config: outbox.Config{Concurrency: 256},
		},
		{name: "a broker of 2 ms, one event in a hundred on one key", takes: broker, hot: 0.01},
	}
	n := lab.Pick(l, 100_000, 10_000)
	var variants []func() (float64, error)
	for _, c := range list {
		variants = append(variants, func() (float64, error) { return c.drain(ctx, l, n) })
	}
	rates, err := interleave(lab.Pick(l, 3, 1), variants...)
	if err != nil {
		return report.Result{}, err
	}
	var r report.Result
	for i, c := range list {
		r.Claims = append(r.Claims, report.Claim{
			What: fmt.Sprintf("drain %s pending events: %s", report.Number(float64(n)),
				c.name), Values: rates[i], Unit: "events/s",
		})
	}
	return r, nil
}

func (c choice) drain(ctx context.Context, l *lab.Lab, n int) (rate float64, err error) {
	w := rival.Uniform(n)
	w.Hot = c.hot
	db, err := backlog(ctx, l, relay, w)
	if err != nil {
		return 0, err
	}
	defer db.Drop()
	if err := spread(ctx, db, cmp.Or(c.shards, events.Shards)); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := drainTo(ctx, db, rival.Relay{Config: c.config}, slowly(c.takes), n); err != nil {
		return 0, fmt.Errorf("%s: %w", c.name, err)
	}
	return measure.Rate(n, time.Since(began)), nil
}

// spread moves the keys of pending events into that many shards, much as if the catalogue had that
// number. The catalogue's 16 shards exist in any case, and are read, too.
func spread(ctx context.Context, db *lab.Database, shards int) error {
	for _, sql := range []string{
		fmt.Sprintf("INSERT INTO outbox_shard (shard) SELECT generate_series(0, %d) ON CONFLICT "+
			"DO NOTHING", shards-1),
		fmt.Sprintf("UPDATE outbox SET shard = (hashtext(key) & 65535) %% %d", shards),
		"VACUUM FULL outbox",
	} {
		if _, err := db.Exec(ctx, sql); err != nil {
			return fmt.Errorf("bench: spread over %d shards: %w", shards, err)
		}
	}
	return db.Analyse(ctx)
}

// slowly is a broker that takes some time for each publish, and allows any number of publishes at
// once.
type slowly time.Duration

// Publish implements outbox.Publisher.
func (s slowly) Publish(ctx context.Context, _ *outbox.Message) error {
	if s > 0 && !wait(ctx, time.Duration(s)) {
		return ctx.Err()
	}
	return nil
}
