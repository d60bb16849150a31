package golang

import (
	"github.com/dave/jennifer/jen"
	"github.com/outboxgen/outboxgen/gen/catalogue"
)

// consumerSource is inventory_consumer.gen.go and so on: a consumer's interface, its inbox, and what it may emit.
func (g *generator) consumerSource(c *catalogue.Consumer) source {
	s := source{name: c.FileName, declarations: []jen.Code{consumerInterface(c), consumerConstructor(c)}}
	if len(c.Emits) > 0 {
		s.declarations = append(s.declarations, emitterType(c))
	}
	for _, e := range c.Emits {
		s.declarations = append(s.declarations, emitMethod(c, e))
	}
	if emitsVersions(c) {
		s.declarations = append(s.declarations, emitVersions(c))
	}
	return s
}

// consumerInterface makes:
//
//	// InventoryConsumer has the effects of consumer "inventory".
//	//
//	// Reserves stock for accepted orders.
//	//
//	// Each method runs in tx …
//	type InventoryConsumer interface {
//		HandleOrderPlacedV1(ctx context.Context, tx pgx.Tx, e OrderPlacedV1, emit InventoryEmitter) error
//	}
func consumerInterface(c *catalogue.Consumer) jen.Code {
	var methods []jen.Code
	for _, e := range c.Handles {
		methods = append(methods, jen.Id("Handle"+e.GoName).Params(handlerParams(c, e)...).Error())
	}
	return comment(
		c.GoName+`Consumer has the effects of consumer "`+c.Name+`".`,
		sentence(c.Doc),
		"Each method runs in tx together with the record that its event was handled: what it does in tx happens once per event. "+
			"What it does outside of tx can repeat.",
	).Line().Type().Id(c.GoName + "Consumer").Interface(methods...)
}

// handlerParams makes the parameters of a handler:
//
//	ctx context.Context, tx pgx.Tx, e OrderPlacedV1, emit InventoryEmitter
func handlerParams(c *catalogue.Consumer, e *catalogue.Event) []jen.Code {
	params := []jen.Code{ctxParam(), txParam(), jen.Id("e").Id(e.GoName)}
	if len(c.Emits) > 0 {
		params = append(params, jen.Id("emit").Id(c.GoName+"Emitter"))
	}
	return params
}

// consumerConstructor makes:
//
//	// NewInventory returns the inbox of consumer "inventory" on store, for a subscriber to hand messages to.
//	func NewInventory(store *Store, c InventoryConsumer) *inbox.Inbox[pgx.Tx] {
//		return inbox.New[pgx.Tx]("inventory", store, map[string]inbox.Route[pgx.Tx]{
//			"order.placed@1": …
//		})
//	}
func consumerConstructor(c *catalogue.Consumer) jen.Code {
	var routes []jen.Code
	for _, e := range c.Handles {
		routes = append(routes, route(c, e))
	}
	name := "New" + c.GoName
	return comment(name+` returns the inbox of consumer "`+c.Name+`" on store, for a subscriber to hand messages to.`).Line().
		Func().Id(name).
		Params(jen.Id("store").Op("*").Id("Store"), jen.Id("c").Id(c.GoName+"Consumer")).
		Op("*").Add(inbox("Inbox")).Types(txType()).
		Block(jen.Return(inbox("New").Types(txType()).Call(
			jen.Lit(c.Name),
			jen.Id("store"),
			jen.Map(jen.String()).Add(inbox("Route")).Types(txType()).Add(valueLines(routes...)),
		)))
}

// route makes the handling of one event; without an emitter, the message has no name:
//
//	"order.placed@1": inbox.RouteTo(func(ctx context.Context, tx pgx.Tx, m *outbox.Message, e OrderPlacedV1) error {
//		return c.HandleOrderPlacedV1(ctx, tx, e, InventoryEmitter{tx: tx, causation: m.ID})
//	})
func route(c *catalogue.Consumer, e *catalogue.Event) jen.Code {
	message, arguments := "_", []jen.Code{jen.Id("ctx"), jen.Id("tx"), jen.Id("e")}
	if len(c.Emits) > 0 {
		message, arguments = "m", append(arguments, jen.Id(c.GoName+"Emitter").
			Values(pair("tx", jen.Id("tx")), pair("causation", selector("m", "ID"))))
	}
	handle := jen.Func().
		Params(ctxParam(), txParam(), jen.Id(message).Op("*").Add(outbox("Message")), jen.Id("e").Id(e.GoName)).Error().
		Block(jen.Return(jen.Id("c").Dot("Handle" + e.GoName).Call(arguments...)))
	return jen.Lit(e.TypeName()).Op(":").Add(inbox("RouteTo")).Call(handle)
}

// emitterType makes:
//
//	// InventoryEmitter enqueues what the consumer may emit, …
//	type InventoryEmitter struct {
//		tx        pgx.Tx
//		causation outbox.ID
//	}
func emitterType(c *catalogue.Consumer) jen.Code {
	name := c.GoName + "Emitter"
	return comment(name+" enqueues what the consumer may emit, as part of the handler's transaction and with the handled event as cause.").
		Line().
		Type().Id(name).Struct(txParam(), jen.Id("causation").Add(outbox("ID")))
}

// emitMethod makes:
//
//	// StockReservedV1 enqueues a stock.reserved@1.
//	func (m InventoryEmitter) StockReservedV1(ctx context.Context, e StockReservedV1) (outbox.ID, error) {
//		return EnqueueStockReservedV1(ctx, m.tx, e, outbox.WithCausation(m.causation))
//	}
func emitMethod(c *catalogue.Consumer, e *catalogue.Event) jen.Code {
	return deprecatedComment(e.Deprecated, e.GoName+" enqueues e, a "+e.TypeName()+".").Line().
		Func().Params(jen.Id("m").Id(c.GoName+"Emitter")).Id(e.GoName).
		Params(ctxParam(), jen.Id("e").Id(e.GoName)).
		Add(results(outbox("ID"), jen.Error())).
		Block(jen.Return(jen.Id("Enqueue"+e.GoName).Call(
			jen.Id("ctx"), selector("m", "tx"), jen.Id("e"),
			outbox("WithCausation").Call(selector("m", "causation")),
		)))
}

// emitsVersions says whether the consumer may emit an event in several versions.
func emitsVersions(c *catalogue.Consumer) bool {
	names := map[string]bool{}
	for _, e := range c.Emits {
		if names[e.Name] {
			return true
		}
		names[e.Name] = true
	}
	return false
}

// emitVersions makes:
//
//	// Versions enqueues versions of one fact …
//	func (m InventoryEmitter) Versions(ctx context.Context, versions ...outbox.Event) (outbox.ID, error) {
//		return EnqueueVersions(ctx, m.tx, versions, outbox.WithCausation(m.causation))
//	}
func emitVersions(c *catalogue.Consumer) jen.Code {
	return comment("Versions enqueues versions of one fact that the consumer may emit, under one "+
		"id, as EnqueueVersions does.").Line().
		Func().Params(jen.Id("m").Id(c.GoName+"Emitter")).Id("Versions").
		Params(ctxParam(), jen.Id("versions").Op("...").Add(outbox("Event"))).
		Add(results(outbox("ID"), jen.Error())).
		Block(jen.Return(jen.Id("EnqueueVersions").Call(
			jen.Id("ctx"), selector("m", "tx"), jen.Id("versions"),
			outbox("WithCausation").Call(selector("m", "causation")),
		)))
}
