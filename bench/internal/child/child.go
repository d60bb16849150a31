// Package child runs relays in processes of their own, which are started from this executable.
//
// A child writes to its standard output how many shards it owns and how many events it has settled,
// whenever that has changed. It relays until its standard input ends, which also happens when its
// parent is gone. Then it finishes its work and writes a report.
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

// variable is the environment variable that makes this executable a relay. It has a job in JSON.
const variable = "OUTBOXGEN_BENCH_RELAY"

// sayInterval is how often a child looks for progress to report.
const sayInterval = 5 * time.Millisecond

// job is what a child needs to know.
type job struct {
	URL    string // of the database
	Record string // the file for the ids of the events that it publishes
	Config outbox.Config
}

// line is one JSON value on a child's standard output.
type line struct {
	Progress Progress
	Report   *Report `json:",omitempty"` // in the last line
}

// Progress is how far a child has come.
type Progress struct {
	Shards  int   // owned
	Settled int64 // events published, and then removed from the outbox
}

// Report is what a child reports at its end.
type Report struct {
	Peak      int64       // bytes of resident memory at most; 0 if the system does not say
	Heap      int64       // bytes that Go's heap had from the system
	Allocated int64       // bytes allocated in total
	IDs       []uuid.UUID `json:"-"` // of what it published, each as often as it published it
}

// Main runs a child if this process is one, and does not return then. It must be called before
// anything else.
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
		_, _ = io.Copy(io.Discard, os.Stdin) // until it ends, in whichever way
		stop()
	}()
	return j.relay(ctx, json.NewEncoder(os.Stdout))
}

// relay publishes until ctx ends, and reports its progress to out.
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
			// If nobody reads standard output, standard input has ended as well.
			_ = out.Encode(line{Progress: p})
			said = p
		}
	}
}

func progressOf(relay *outbox.Relay) Progress {
	s := relay.Stats()
	return Progress{Shards: s.Shards, Settled: s.Published}
}
