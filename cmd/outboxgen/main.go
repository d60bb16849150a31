// Command outboxgen compiles a catalogue of events to Go, SQL and migrations. See outboxgen help.
package main

import (
	"context"
	"os"
	"os/signal"
)

func main() { os.Exit(mainCode()) }

// mainCode returns the exit code, so that what is deferred runs.
func mainCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return Do(ctx, os.Args[1:], Env{Stdout: os.Stdout, Stderr: os.Stderr})
}
