package scenario

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"

	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/report"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
)

// broker has the relay and its peers publish the same backlog to a JetStream server on the same
// processors. The relay's bound is what the processors allow if the relay costs only what the
// client's own asynchronous publish and a drain without a broker cost.
func broker(ctx context.Context, l *lab.Lab) (report.Result, error) {
	w := rival.Uniform(lab.Pick(l, 100_000, 30_000))
	drain := func(c rival.Contestant) func() (float64, error) {
		return func() (float64, error) { return drainOnce(ctx, l, c, w) }
	}
	peers := []rival.ToJetStream{{Streamer: forwarder}, {Streamer: river}}
	rates, err := interleave(lab.Pick(l, 5, 2),
		func() (float64, error) { return publishAsync(ctx, w) }, drain(relay),
		drain(rival.ToJetStream{Streamer: relay}), drain(peers[0]), drain(peers[1]))
	if err != nil {
		return report.Result{}, err
	}
	client, alone, published := rates[0], rates[1], rates[2]
	bound := client.Serial(alone)
	what := fmt.Sprintf("drain %s pending events to JetStream, against ",
		report.Number(float64(w.Events)))
	claims := []report.Claim{{
		What:   what + "the bound of client and drain, each by itself",
		Values: published.Over(bound), Unit: "×", Bound: report.AtLeast(0.75),
		Detail: fmt.Sprintf("%s against %s, of the client's %s and the drain's %s",
			perSecond(published), perSecond(bound), perSecond(client), perSecond(alone)),
	}}
	for i, peer := range peers {
		claims = append(claims, report.Claim{
			What: what + peer.Streamer.Name(), Values: published.Over(rates[3+i]), Unit: "×",
			Detail: fmt.Sprintf("%s against %s", perSecond(published), perSecond(rates[3+i])),
		})
	}
	return report.Result{Claims: claims}, nil
}

// publishAsync measures how fast the client alone publishes a workload.
func publishAsync(ctx context.Context, w rival.Workload) (rate float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, drainLimit)
	defer cancel()
	orders := w.Orders()
	runtime.GC() // frees what the last measurement has left
	took, err := rival.PublishAsync(ctx, orders)
	if err != nil {
		return 0, fmt.Errorf("the client alone: %w", err)
	}
	rate = measure.Rate(w.Events, took)
	slog.Info("published", "by", "the client alone", "events", w.Events, "per second", int(rate))
	return rate, nil
}
