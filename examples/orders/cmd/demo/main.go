// Command demo plays, on a real PostgreSQL and a real NATS JetStream and with real processes that
// are really killed, what gets lost without an outbox and does not with one. Every claim is
// checked: it exits with 1 where one does not hold.
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

// Children are started from the main thread, whose end is the demo's: see process_linux.go.
func init() { runtime.LockOSThread() }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal finds no handler
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

// An act shows one thing, and fails where it is not so.
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
			err = errors.New("interrupted") // whatever came of that
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
