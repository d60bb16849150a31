// Command bench measures outboxgen against what one would take instead.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/report"
	"github.com/outboxgen/outboxgen/bench/internal/scenario"
)

func main() {
	quick := flag.Bool("quick", false, "fewer events and rounds: under three minutes")
	only := flag.String("only", "", "run these `scenarios`, separated by commas")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *quick, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, quick bool, only string) error {
	l, err := lab.Open(ctx, quick)
	if err != nil {
		return err
	}
	defer l.Close()
	var all report.Result
	for _, s := range scenario.All {
		if only != "" && !slices.Contains(strings.Split(only, ","), s.Name) {
			continue
		}
		r, err := s.Run(ctx, l)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		all.Claims = append(all.Claims, r.Claims...)
		all.Lines = append(all.Lines, r.Lines...)
	}
	for _, c := range all.Claims {
		fmt.Printf("%-70s %8.2f %s (%.2f–%.2f) %v  %s\n", c.What, c.Values.Median(), c.Unit, c.Values.Min(), c.Values.Max(), c.Reached(), c.Detail)
	}
	return nil
}
