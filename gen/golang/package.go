package golang

import (
	"time"

	"github.com/dave/jennifer/jen"
	"github.com/outboxgen/outboxgen/gen/sql"
)

// packageSource is outbox.gen.go: what the package is, and what all of it shares.
func (g *generator) packageSource() source {
	return source{
		name: "outbox.gen.go",
		packageDoc: []string{
			"Package " + g.catalogue.Go.Package + " holds the events of " + oneLine(g.catalogue.Service) + ".",
			"Its enqueue functions make an event part of a transaction. Its Store serves the relay, which publishes what was committed, " +
				"and the consumers, which apply what a broker delivers.",
		},
		declarations: []jen.Code{handshake(), g.constants(), doorbell()},
	}
}

// handshake makes:
//
//	// The runtime that this code needs. …
//	const _ = outbox.GeneratedV1
func handshake() jen.Code {
	return comment("The runtime that this code needs. Where it does not compile, the module github.com/outboxgen/outboxgen is older or newer " +
		"than the generator: require the generator's version, or run go generate again.").Line().
		Const().Id("_").Op("=").Add(outbox("GeneratedV1"))
}

// constants makes:
//
//	const (
//		// Service is the CloudEvents source of every event.
//		Service = "shop/orders"
//		…
//		channel = "outbox" // of NOTIFY
//	)
func (g *generator) constants() jen.Code {
	kept := "Retention is how long published events stay readable."
	if g.catalogue.Relay.Retention == 0 {
		kept = "Retention is how long published events stay readable: not at all."
	}
	return jen.Const().Defs(
		comment("Service is the CloudEvents source of every event."),
		jen.Id("Service").Op("=").Lit(g.catalogue.Service),
		comment("Shards is the number of parts that relays share out among themselves."),
		jen.Id("Shards").Op("=").Lit(g.catalogue.Relay.Shards),
		comment(kept),
		jen.Id("Retention").Op("=").Add(duration(g.catalogue.Relay.Retention)),
		jen.Line(),
		jen.Id("channel").Op("=").Lit(sql.Channel(g.catalogue.Database)).Comment("of NOTIFY"),
	)
}

// duration makes a duration in the largest unit of which it is a whole number:
//
//	72 * time.Hour
func duration(d time.Duration) jen.Code {
	if d == 0 {
		return jen.Qual("time", "Duration").Call(jen.Lit(0))
	}
	units := []struct {
		name string
		size time.Duration
	}{
		{"Hour", time.Hour}, {"Minute", time.Minute}, {"Second", time.Second},
		{"Millisecond", time.Millisecond}, {"Microsecond", time.Microsecond}, {"Nanosecond", time.Nanosecond},
	}
	i := 0
	for d%units[i].size != 0 {
		i++
	}
	unit := jen.Qual("time", units[i].name)
	if d == units[i].size {
		return unit
	}
	return integer(int64(d / units[i].size)).Op("*").Add(unit)
}

// doorbell makes:
//
//	// doorbell is rung by every enqueue in this process.
//	var doorbell outbox.Doorbell
func doorbell() jen.Code {
	return comment("doorbell is rung by every enqueue in this process.").Line().
		Var().Id("doorbell").Add(outbox("Doorbell"))
}
