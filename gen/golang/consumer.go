package golang

import (
	"github.com/dave/jennifer/jen"
	"github.com/outboxgen/outboxgen/gen/catalogue"
)

// consumerSource is inventory_consumer.gen.go and so on: a consumer's interface, its transaction,
// and its inbox.
func (g *generator) consumerSource(c *catalogue.Consumer) source {
	s := source{
		name:         c.FileName,
		declarations: []jen.Code{consumerInterface(c), g.consumerConstructor(c), g.consumerTx(c)},
	}
	for _, e := range c.Emits {
		s.declarations = append(s.declarations, emitMethod(c, e))
	}
	if emitsVersions(c) {
		s.declarations = append(s.declarations, emitVersions(c))
	}
	if len(c.Emits) > 0 {
		s.declarations = append(s.declarations, emit(c))
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
//		HandleOrderPlacedV1(ctx context.Context, tx InventoryTx, e OrderPlacedV1) error
//	}
func consumerInterface(c *catalogue.Consumer) jen.Code {
	var methods []jen.Code
	for _, e := range c.Handles {
		methods = append(methods, jen.Id("Handle"+e.GoName).
			Params(ctxParam(), jen.Id("tx").Id(c.GoName+"Tx"), jen.Id("e").Id(e.GoName)).Error())
	}
	return comment(
		c.GoName+`Consumer has the effects of consumer "`+c.Name+`".`,
		sentence(c.Doc),
		"Each method runs in tx together with the record that its event was handled: what it does "+
			"in tx happens once per event. What it does outside of tx can repeat.",
	).Line().Type().Id(c.GoName + "Consumer").Interface(methods...)
}

// consumerConstructor makes:
//
//	// NewInventory returns the inbox of consumer "inventory" on store, …
//	func NewInventory(store *Store, c InventoryConsumer) *inbox.Inbox[pgx.Tx] {
//		return inbox.New[pgx.Tx]("inventory", store, map[string]inbox.Route[pgx.Tx]{
//			"order.placed@1": …
//		})
//	}
func (g *generator) consumerConstructor(c *catalogue.Consumer) jen.Code {
	var routes []jen.Code
	for _, e := range c.Handles {
		routes = append(routes, g.route(c, e))
	}
	name := "New" + c.GoName
	doc := name + ` returns the inbox of consumer "` + c.Name +
		`" on store, for a subscriber to hand messages to.`
	return comment(doc).Line().
		Func().Id(name).
		Params(jen.Id("store").Op("*").Id("Store"), jen.Id("c").Id(c.GoName+"Consumer")).
		Op("*").Add(inbox("Inbox")).Types(g.txType()).
		Block(jen.Return(inbox("New").Types(g.txType()).Call(
			jen.Lit(c.Name),
			jen.Id("store"),
			jen.Map(jen.String()).Add(inbox("Route")).Types(g.txType()).Add(valueLines(routes...)),
		)))
}

// route makes the handling of one event:
//
//	"order.placed@1": inbox.RouteTo(func(… tx pgx.Tx, m *outbox.Message, e OrderPlacedV1) error {
//		return c.HandleOrderPlacedV1(ctx, InventoryTx{Tx: tx, Message: m}, e)
//	})
func (g *generator) route(c *catalogue.Consumer, e *catalogue.Event) jen.Code {
	handle := jen.Func().
		Params(ctxParam(), g.txParam(), messageParam(), jen.Id("e").Id(e.GoName)).Error().
		Block(jen.Return(jen.Id("c").Dot("Handle"+e.GoName).Call(
			jen.Id("ctx"),
			jen.Id(c.GoName+"Tx").Values(pair("Tx", jen.Id("tx")), pair("Message", jen.Id("m"))),
			jen.Id("e"),
		)))
	return jen.Lit(e.TypeName()).Op(":").Add(inbox("RouteTo")).Call(handle)
}

// messageParam makes the parameter:
//
//	m *outbox.Message
func messageParam() *jen.Statement { return jen.Id("m").Op("*").Add(outbox("Message")) }

// consumerTx makes:
//
//	// InventoryTx is the transaction in which consumer "inventory" handles an event. …
//	type InventoryTx struct {
//		pgx.Tx
//		// Message is what the broker delivered: …
//		Message *outbox.Message
//	}
func (g *generator) consumerTx(c *catalogue.Consumer) jen.Code {
	name := c.GoName + "Tx"
	doc := name + ` is the transaction in which consumer "` + c.Name +
		`" handles an event. The inbox ends it.`
	if len(c.Emits) > 0 {
		doc += " What it enqueues has that event as its cause."
	}
	return comment(doc).Line().Type().Id(name).Struct(
		g.txType(),
		comment("Message is what the broker delivered: the event's id, source, headers and time. "+
			"A handler must not change it."),
		jen.Id("Message").Op("*").Add(outbox("Message")),
	)
}

// emitMethod makes:
//
//	// EnqueueStockReservedV1 records e in the outbox as part of tx. …
//	func (tx InventoryTx) EnqueueStockReservedV1(
//		ctx context.Context, e StockReservedV1, opts ...outbox.EnqueueOption,
//	) (outbox.ID, error) {
//		return tx.enqueue(ctx, []Event{e}, opts)
//	}
func emitMethod(c *catalogue.Consumer, e *catalogue.Event) jen.Code {
	name := "Enqueue" + e.GoName
	doc := name + " records e in the outbox as part of tx. " + enqueueErrors
	return deprecatedComment(e.Deprecated, doc).Line().
		Func().Add(txReceiver(c)).Id(name).
		Add(longParams(ctxParam(), jen.Id("e").Id(e.GoName), optionsParam())).
		Add(results(outbox("ID"), jen.Error())).
		Block(jen.Return(jen.Id("tx").Dot("enqueue").Call(jen.Id("ctx"), justE(), jen.Id("opts"))))
}

// txReceiver makes:
//
//	(tx InventoryTx)
func txReceiver(c *catalogue.Consumer) *jen.Statement {
	return jen.Params(jen.Id("tx").Id(c.GoName + "Tx"))
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
//	// EnqueueVersions records versions of one fact …
//	func (tx InventoryTx) EnqueueVersions(
//		ctx context.Context, versions []Event, opts ...outbox.EnqueueOption,
//	) (outbox.ID, error) {
//		return tx.enqueue(ctx, versions, opts)
//	}
func emitVersions(c *catalogue.Consumer) jen.Code {
	return comment("EnqueueVersions records versions of one fact in the outbox as part of tx, as " +
		"Store.EnqueueVersions does.").Line().
		Func().Add(txReceiver(c)).Id("EnqueueVersions").
		Add(longParams(ctxParam(), versionsParam(), optionsParam())).
		Add(results(outbox("ID"), jen.Error())).
		Block(jen.Return(jen.Id("tx").Dot("enqueue").
			Call(jen.Id("ctx"), jen.Id("versions"), jen.Id("opts"))))
}

// versionsParam makes the parameter:
//
//	versions []Event
func versionsParam() *jen.Statement { return jen.Id("versions").Index().Id("Event") }

// emit makes:
//
//	// enqueue rings no doorbell, as the inbox does so once tx has committed.
//	func (tx InventoryTx) enqueue(
//		ctx context.Context, versions []Event, opts []outbox.EnqueueOption,
//	) (outbox.ID, error) {
//		opts = append(slices.Clip(opts), outbox.WithCausation(tx.Message.ID))
//		return enqueueVersions(ctx, tx.Tx, versions, opts)
//	}
func emit(c *catalogue.Consumer) jen.Code {
	return comment("enqueue rings no doorbell, as the inbox does so once tx has committed.").Line().
		Func().Add(txReceiver(c)).Id("enqueue").
		Add(longParams(ctxParam(), versionsParam(),
			jen.Id("opts").Index().Add(outbox("EnqueueOption")))).
		Add(results(outbox("ID"), jen.Error())).
		Block(
			jen.Id("opts").Op("=").Append(
				jen.Qual("slices", "Clip").Call(jen.Id("opts")),
				outbox("WithCausation").Call(selector("tx", "Message", "ID")),
			),
			jen.Return(jen.Id("enqueueVersions").Call(
				jen.Id("ctx"), selector("tx", "Tx"), jen.Id("versions"), jen.Id("opts"),
			)),
		)
}
