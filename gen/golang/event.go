package golang

import (
	"fmt"
	"strings"

	"github.com/dave/jennifer/jen"
	"github.com/outboxgen/outboxgen/gen/catalogue"
)

// eventSource is order_placed_v1.gen.go and so on: an event's payload and how to enqueue it.
func (g *generator) eventSource(e *catalogue.Event) source {
	s := source{name: e.FileName}
	key, err := eventKey(e)
	if err != nil {
		s.err = err
		return s
	}
	validation, err := g.validation(e.GoName, "e", e.Fields)
	if err != nil {
		s.err = err
		return s
	}
	s.declarations = append(s.declarations, eventStruct(e), eventType(e), key, isEvent(e))
	s.declarations = append(s.declarations, validation...)
	s.declarations = append(s.declarations, g.enqueueEvent(e), g.queueEvent(e))
	return s
}

// eventStruct makes:
//
//	// OrderPlacedV1 is the payload of order.placed@1.
//	//
//	// An order was accepted and priced. Events with the same OrderID are published in order.
//	type OrderPlacedV1 struct {
//		…
//	}
func eventStruct(e *catalogue.Event) jen.Code {
	paragraphs := append(
		[]string{e.GoName + " is the payload of " + e.TypeName() + "."}, eventDoc(e)...)
	var key *catalogue.Field
	if len(e.Key) > 0 {
		key = e.Key[0]
	}
	return deprecatedComment(e.Deprecated, paragraphs...).Line().
		Add(structType(e.GoName, e.Fields, key))
}

// eventDoc returns what is said of an event, and of its order; both in one paragraph where there is
// one.
func eventDoc(e *catalogue.Event) []string {
	doc := sentence(e.Doc)
	if len(e.Key) == 0 {
		return []string{doc}
	}
	order := "Events with the same " + strings.Join(goNames(e.Key), ".") +
		" are published in order."
	if strings.Contains(doc, "\n") {
		return []string{doc, order}
	}
	return []string{doc + " " + order}
}

func goNames(fields []*catalogue.Field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.GoName
	}
	return names
}

// eventType makes:
//
//	// EventType implements outbox.Event.
//	func (OrderPlacedV1) EventType() outbox.EventType {
//		return outbox.EventType{
//			Name: "order.placed", Version: 1, Topic: "shop.orders", Ordering: outbox.OrderingKey,
//		}
//	}
func eventType(e *catalogue.Event) jen.Code {
	ordering := "OrderingNone"
	if len(e.Key) > 0 {
		ordering = "OrderingKey"
	}
	return comment("EventType implements outbox.Event.").Line().
		Func().Params(jen.Id(e.GoName)).Id("EventType").Params().Add(outbox("EventType")).
		Block(jen.Return(outbox("EventType").Values(
			pair("Name", jen.Lit(e.Name)),
			pair("Version", jen.Lit(e.Version)),
			pair("Topic", jen.Lit(e.Topic)),
			pair("Ordering", outbox(ordering)),
		)))
}

// eventKey makes:
//
//	// EventKey implements outbox.Event.
//	func (e OrderPlacedV1) EventKey() string { return e.OrderID.String() }
func eventKey(e *catalogue.Event) (jen.Code, error) {
	method := func(receiver, text jen.Code) jen.Code {
		return comment("EventKey implements outbox.Event.").Line().
			Func().Params(receiver).Id("EventKey").Params().String().
			Add(shortBody(jen.Return(text)))
	}
	if len(e.Key) == 0 {
		return method(jen.Id(e.GoName), jen.Lit("")), nil
	}
	for _, f := range e.Key {
		if f.Type.Optional {
			return nil, fmt.Errorf("key of %s: %s is optional", e.TypeName(), f.Name)
		}
	}
	text := keyText(e.Key[len(e.Key)-1].Type, selector("e", goNames(e.Key)...))
	if text == nil {
		return nil, fmt.Errorf("key of %s: %s has no text", e.TypeName(), e.Key[len(e.Key)-1].Name)
	}
	return method(jen.Id("e").Id(e.GoName), text), nil
}

// isEvent makes:
//
//	func (OrderPlacedV1) event() {}
func isEvent(e *catalogue.Event) jen.Code {
	return jen.Func().Params(jen.Id(e.GoName)).Id("event").Params().Block()
}

// enqueueErrors is what every function that enqueues by itself says of its errors.
const enqueueErrors = "An *outbox.EventError says that e is invalid, and leaves tx usable; " +
	"after any other error, tx must be rolled back."

// enqueueEvent makes:
//
//	// EnqueueOrderPlacedV1 records e in the outbox as part of tx: …
//	func (s *Store) EnqueueOrderPlacedV1(
//		ctx context.Context, tx pgx.Tx, e OrderPlacedV1, opts ...outbox.EnqueueOption,
//	) (outbox.ID, error) {
//		return s.EnqueueVersions(ctx, tx, []Event{e}, opts...)
//	}
func (g *generator) enqueueEvent(e *catalogue.Event) jen.Code {
	name := "Enqueue" + e.GoName
	doc := name + " records e in the outbox as part of tx: it is published if and only if tx " +
		"commits. " + enqueueErrors
	return deprecatedComment(e.Deprecated, doc).Line().
		Func().Add(storeReceiver()).Id(name).
		Add(longParams(ctxParam(), g.txParam(), jen.Id("e").Id(e.GoName), optionsParam())).
		Add(results(outbox("ID"), jen.Error())).
		Block(jen.Return(jen.Id("s").Dot("EnqueueVersions").
			Call(jen.Id("ctx"), jen.Id("tx"), justE(), jen.Id("opts").Op("..."))))
}

// queueEvent makes:
//
//	// QueueOrderPlacedV1 adds to batch what EnqueueOrderPlacedV1 does. …
//	func (s *Store) QueueOrderPlacedV1(
//		ctx context.Context, batch *pgx.Batch, e OrderPlacedV1, opts ...outbox.EnqueueOption,
//	) (outbox.ID, error) {
//		return s.QueueVersions(ctx, batch, []Event{e}, opts...)
//	}
func (g *generator) queueEvent(e *catalogue.Event) jen.Code {
	name := "Queue" + e.GoName
	doc := name + " adds to batch what Enqueue" + e.GoName + " does. A batch is no transaction: " +
		"send it by tx.SendBatch. If a pool or a connection sends it, the batch is a transaction " +
		"of its own, and e commits with the batch's other statements alone. Every error is an " +
		"*outbox.EventError, and leaves batch as it was."
	return deprecatedComment(e.Deprecated, doc).Line().
		Func().Add(storeReceiver()).Id(name).
		Add(longParams(ctxParam(), g.batchParam(), jen.Id("e").Id(e.GoName), optionsParam())).
		Add(results(outbox("ID"), jen.Error())).
		Block(jen.Return(jen.Id("s").Dot("QueueVersions").
			Call(jen.Id("ctx"), jen.Id("batch"), justE(), jen.Id("opts").Op("..."))))
}

// storeReceiver makes:
//
//	(s *Store)
func storeReceiver() *jen.Statement { return jen.Params(jen.Id("s").Op("*").Id("Store")) }

// justE makes:
//
//	[]Event{e}
func justE() jen.Code { return jen.Index().Id("Event").Values(jen.Id("e")) }

// optionsParam makes the parameter:
//
//	opts ...outbox.EnqueueOption
func optionsParam() *jen.Statement { return jen.Id("opts").Op("...").Add(outbox("EnqueueOption")) }

// batchParam makes the parameter:
//
//	batch *pgx.Batch
func (g *generator) batchParam() *jen.Statement {
	return jen.Id("batch").Add(driverType(g.dialect.Batch))
}
