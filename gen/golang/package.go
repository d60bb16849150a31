package golang

import (
	"time"

	"github.com/dave/jennifer/jen"
	"github.com/outboxgen/outboxgen/gen/sql"
)

// packageSource is outbox.gen.go: what the package is, and what all enqueue functions share.
func (g *generator) packageSource() source {
	s := source{
		name: "outbox.gen.go",
		packageDoc: []string{
			"Package " + g.catalogue.Go.Package + " holds the events of " + oneLine(g.catalogue.Service) + ".",
			"Its enqueue functions make an event part of a transaction. Its Store serves the relay, which publishes what was committed, " +
				"and the consumers, which apply what a broker delivers.",
		},
		declarations: []jen.Code{handshake(), g.constants(), doorbell(), enqueueAll(), enqueue()},
	}
	if len(g.catalogue.Events) > 0 {
		s.declarations = append(s.declarations, enqueueOne(), queueOne())
	}
	return s
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

// enqueueAll makes:
//
//	// Enqueue records events in the outbox as part of tx, …
//	func Enqueue(ctx context.Context, tx pgx.Tx, events ...outbox.Event) ([]outbox.ID, error) {
//		return enqueue(ctx, tx, events)
//	}
func enqueueAll() jen.Code {
	return comment("Enqueue records events in the outbox as part of tx, in their order: they are published if and only if tx commits. "+
		" On an error nothing was recorded; where the database has refused, tx must be rolled back.").Line().
		Func().Id("Enqueue").Params(ctxParam(), txParam(), jen.Id("events").Op("...").Add(outbox("Event"))).
		Add(results(jen.Index().Add(outbox("ID")), jen.Error())).
		Block(jen.Return(jen.Id("enqueue").Call(jen.Id("ctx"), jen.Id("tx"), jen.Id("events"))))
}

// enqueue makes:
//
//	func enqueue(ctx context.Context, tx pgx.Tx, events []outbox.Event, opts ...outbox.EnqueueOption) ([]outbox.ID, error) {
//		rows, err := outbox.Encode(ctx, Shards, events, opts...)
//		if err != nil {
//			return nil, err
//		}
//		if err := insert(ctx, tx, rows); err != nil {
//			return nil, fmt.Errorf("outbox: enqueue: %w", err)
//		}
//		doorbell.Ring()
//		return outbox.IDs(rows), nil
//	}
func enqueue() jen.Code {
	return jen.Func().Id("enqueue").
		Params(ctxParam(), txParam(), jen.Id("events").Index().Add(outbox("Event")), optionsParam()).
		Add(results(jen.Index().Add(outbox("ID")), jen.Error())).
		Block(
			assign("rows", encode(jen.Id("events"))),
			ifFailed(jen.Err(), jen.Nil()),
			try(jen.Id("insert").Call(jen.Id("ctx"), jen.Id("tx"), jen.Id("rows")), failure("outbox: enqueue"), jen.Nil()),
			ring(),
			jen.Return(outbox("IDs").Call(jen.Id("rows")), jen.Nil()),
		)
}

// encode makes:
//
//	outbox.Encode(ctx, Shards, events, opts...)
func encode(events jen.Code) jen.Code {
	return outbox("Encode").Call(jen.Id("ctx"), jen.Id("Shards"), events, jen.Id("opts").Op("..."))
}

// ring makes:
//
//	doorbell.Ring()
func ring() jen.Code { return selector("doorbell", "Ring").Call() }

// enqueueOne makes:
//
//	func enqueueOne(ctx context.Context, tx pgx.Tx, e outbox.Event, opts []outbox.EnqueueOption) (outbox.ID, error) {
//		ids, err := enqueue(ctx, tx, []outbox.Event{e}, opts...)
//		if err != nil {
//			return outbox.ID{}, err
//		}
//		return ids[0], nil
//	}
func enqueueOne() jen.Code {
	return jen.Func().Id("enqueueOne").
		Params(ctxParam(), txParam(), eventParam(), optionListParam()).
		Add(results(outbox("ID"), jen.Error())).
		Block(
			assign("ids", jen.Id("enqueue").Call(jen.Id("ctx"), jen.Id("tx"), justE(), jen.Id("opts").Op("..."))),
			ifFailed(jen.Err(), outbox("ID").Values()),
			jen.Return(jen.Id("ids").Index(jen.Lit(0)), jen.Nil()),
		)
}

// queueOne makes:
//
//	func queueOne(ctx context.Context, batch *pgx.Batch, e outbox.Event, opts []outbox.EnqueueOption) (outbox.ID, error) {
//		rows, err := outbox.Encode(ctx, Shards, []outbox.Event{e}, opts...)
//		if err != nil {
//			return outbox.ID{}, err
//		}
//		queue(batch, rows[0])
//		doorbell.Ring()
//		return rows[0].ID, nil
//	}
func queueOne() jen.Code {
	first := jen.Id("rows").Index(jen.Lit(0))
	return jen.Func().Id("queueOne").
		Params(ctxParam(), batchParam(), eventParam(), optionListParam()).
		Add(results(outbox("ID"), jen.Error())).
		Block(
			assign("rows", encode(justE())),
			ifFailed(jen.Err(), outbox("ID").Values()),
			jen.Id("queue").Call(jen.Id("batch"), first.Clone()),
			ring(),
			jen.Return(first.Clone().Dot("ID"), jen.Nil()),
		)
}

// eventParam makes the parameter:
//
//	e outbox.Event
func eventParam() jen.Code { return jen.Id("e").Add(outbox("Event")) }

// optionListParam makes the parameter:
//
//	opts []outbox.EnqueueOption
func optionListParam() jen.Code { return jen.Id("opts").Index().Add(outbox("EnqueueOption")) }

// justE makes:
//
//	[]outbox.Event{e}
func justE() jen.Code { return jen.Index().Add(outbox("Event")).Values(jen.Id("e")) }
