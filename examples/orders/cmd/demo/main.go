// Command demo shows, on a real PostgreSQL and a real NATS JetStream and with real processes that
// it kills, what is lost without an outbox and is not lost with one. It checks every claim, and
// exits with 1 if one does not hold.
//
//	cd examples && go run ./orders/cmd/demo
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// Child processes are started from the main thread, which lives as long as the demo: see
// process_linux.go.
func init() { runtime.LockOSThread() }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process
	err := errors.New("usage: demo")
	switch {
	case len(os.Args) == 1:
		err = run(ctx, newStage(os.Stdout))
	case len(os.Args) == 3 && os.Args[1] == byHandCommand:
		err = writeByHand(ctx, os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// An act shows one thing, and returns an error if it does not hold.
type act struct {
	title string
	play  func(context.Context, *world) error
}

var acts = []act{
	{"Two writes by hand, and the process is killed between them", dualWrite},
	{"With an outbox, the broker is up", brokerUp},
	{"The broker is down", brokerDown},
	{"The transaction is rolled back", rolledBack},
	{"The broker takes the message, and its acknowledgement is lost", acknowledgementLost},
	{"The relay is killed between publishing and recording that it did", relayKilled},
	{"A consumer commits and dies before its own events went out", consumerKilled},
}

func run(ctx context.Context, s *stage) (err error) {
	w, err := open(ctx, s)
	defer func() {
		if ctx.Err() != nil {
			err = errors.New("interrupted") // whatever error followed from that
		}
		err = errors.Join(err, w.close())
	}()
	if err != nil {
		return err
	}
	for i, a := range acts {
		s.act(i+1, a.title)
		if err := a.play(ctx, w); err != nil {
			return fmt.Errorf("act %d does not hold: %w\n%s", i+1, err, w.logs())
		}
	}
	if err := w.finish(ctx); err != nil {
		return fmt.Errorf("the end does not hold: %w\n%s", err, w.logs())
	}
	return nil
}
