// Command bench measures outboxgen against its alternatives. It writes a table to standard output,
// and its progress to standard error. The exit code is 0 whatever the figures are, 1 if something
// could not be measured, and 2 if the flags are wrong. Only a whole run can be written to a
// directory: -out excludes -quick and -only.
//
//	go run ./cmd/bench -quick
//	go run ./cmd/bench -only drain,wal
//	go run ./cmd/bench -out results
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"

	"github.com/outboxgen/outboxgen/bench/internal/child"
	"github.com/outboxgen/outboxgen/bench/internal/scenario"
)

func main() {
	child.Main() // it does not return if this process is a relay of a benchmark
	os.Exit(mainCode())
}

// mainCode returns the exit code, so that what is deferred runs.
func mainCode() int {
	log.SetFlags(log.Ltime) // of slog's default logger
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process
	return do(ctx, scenario.All, os.Args[1:], os.Stdout, os.Stderr)
}

// do runs the command with its arguments, and returns the exit code.
func do(
	ctx context.Context, scenarios []scenario.Scenario, args []string, stdout, stderr io.Writer,
) int {
	o, err := parse(scenarios, args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2 // parse has said why
	case o.list:
		for _, s := range o.scenarios {
			fmt.Fprintln(stdout, s.Name)
		}
		return 0
	}
	if err := run(ctx, o, stdout); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}
