// Package child runs relays in processes of their own: this executable, started again.
//
// Whenever it has changed, a child says on its standard output how many shards it owns and how many
// events it has settled. It relays until its standard input ends, which is also what it sees when
// its parent is gone. Then it finishes what it has begun, and says what it came to.
package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/outboxgen/outboxgen/bench/events"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// variable is the environment variable that makes a relay of this executable: a job in JSON.
const variable = "OUTBOXGEN_BENCH_RELAY"

// sayInterval is how often a child looks for what to say.
const sayInterval = 5 * time.Millisecond

// job is what a child has to know.
type job struct {
	URL    string // of the database
	Record string // the file for the ids of what it publishes
	Config outbox.Config
}

// line is one JSON value on a child's standard output.
type line struct {
	Progress Progress
	Report   *Report `json:",omitempty"` // in the last line
}

// Progress is where a child stands.
type Progress struct {
	Shards  int   // that it owns
	Settled int64 // events that it has published, and then removed from the outbox
}

// Report is what a child came to.
type Report struct {
	Peak      int64       // bytes of resident memory at most; 0 where the system does not say
	Heap      int64       // bytes that Go's heap had from the system
	Allocated int64       // bytes that were allocated in the course of time
	IDs       []uuid.UUID `json:"-"` // of what it published, each as often as it published it
}

// Main does the work of a child where this process is one, and does not return then. It must be
// called before anything else.
func Main() {
	text, ok := os.LookupEnv(variable)
	if !ok {
		return
	}
	if err := run(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return fmt.Errorf("bench: %s: %w", variable, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // however it ends
		stop()
	}()
	return j.relay(ctx, json.NewEncoder(os.Stdout))
}

// relay relays until ctx ends, and says to out how it gets on.
func (j job) relay(ctx context.Context, out *json.Encoder) error {
	pool, err := pgxpool.New(ctx, j.URL)
	if err != nil {
		return fmt.Errorf("bench: relay process: %w", err)
	}
	defer pool.Close()
	record, err := createRecord(j.Record)
	if err != nil {
		return err
	}
	j.Config.Logger = slog.New(slog.NewTextHandler(os.Stderr,
		&slog.HandlerOptions{Level: slog.LevelWarn}))
	relay, err := outbox.NewRelay(events.NewStore(pool), record, j.Config)
	if err != nil {
		return err
	}
	var saying sync.WaitGroup
	saying.Go(func() { say(ctx, relay, out) })
	err = relay.Run(ctx)
	saying.Wait()
	err = errors.Join(err, record.close())
	if err != nil {
		return err
	}
	r, err := newReport()
	return errors.Join(err, out.Encode(line{Progress: progressOf(relay), Report: &r}))
}

func say(ctx context.Context, relay *outbox.Relay, out *json.Encoder) {
	ticker := time.NewTicker(sayInterval)
	defer ticker.Stop()
	var said Progress
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if p := progressOf(relay); p != said {
			// where nobody listens, standard input has ended as well
			_ = out.Encode(line{Progress: p})
			said = p
		}
	}
}

func progressOf(relay *outbox.Relay) Progress {
	s := relay.Stats()
	return Progress{Shards: s.Shards, Settled: s.Published}
}
