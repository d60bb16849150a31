// Command outboxgen compiles a catalogue of events to Go, SQL and migrations. See outboxgen help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(mainCode()) }

// mainCode returns the exit code, so that what is deferred runs.
func mainCode() int {
	ctx, stop := withSignals(context.Background())
	defer stop()
	return Do(ctx, os.Args[1:], Env{Stdout: os.Stdout, Stderr: os.Stderr})
}

// interruption is the cause of a context that a signal has ended.
type interruption struct{ os.Signal }

func (i interruption) Error() string { return "interrupted (" + i.String() + ")" }

// code returns the exit code that shells expect of a process that a signal has ended.
func (i interruption) code() int {
	if n, ok := i.Signal.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return exitFailed
}

// withSignals returns a context that ends with the first signal that asks for it. Further ones are
// ignored, since "go tool" sends again what the terminal has sent already.
func withSignals(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		select {
		case s := <-signals:
			cancel(interruption{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}
