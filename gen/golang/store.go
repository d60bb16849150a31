package golang

import "github.com/dave/jennifer/jen"

// storeSource is store.gen.go: the outbox and the inbox on sqlc's queries. A method for each query, and no more; it stands in
// the file of this package that is named after the runtime's interface.
func (g *generator) storeSource() source {
	declarations := []jen.Code{g.storeType(), storeImplements(), g.newStore(), storeDoorbell(), storeMaintain()}
	declarations = append(declarations, g.membershipMethods()...)
	declarations = append(declarations, g.readerMethods()...)
	declarations = append(declarations, g.settlerMethods()...)
	declarations = append(declarations, g.deadLettersMethods()...)
	declarations = append(declarations, listenerMethods()...)
	declarations = append(declarations, g.inboxMethods()...)
	declarations = append(declarations, g.planned()...)
	declarations = append(declarations, g.messageFunction(), g.messagesFunction(), ownedColumns(), readColumns(), texts())
	return source{name: "store.gen.go", declarations: declarations}
}

// storeType makes:
//
//	// Store is the outbox and the inbox in PostgreSQL, …
//	type Store struct {
//		pool *pgxpool.Pool
//		db   *outboxdb.Queries
//	}
func (g *generator) storeType() jen.Code {
	return comment("Store is the outbox and the inbox in PostgreSQL, for the relay and the consumers.").Line().
		Type().Id("Store").Struct(poolParam(), jen.Id("db").Op("*").Add(g.outboxdb("Queries")))
}

// storeImplements makes:
//
//	var (
//		_ outbox.Store = (*Store)(nil)
//		…
//	)
func storeImplements() jen.Code {
	is := func(iface *jen.Statement) jen.Code {
		return jen.Id("_").Add(iface).Op("=").Parens(jen.Op("*").Id("Store")).Call(jen.Nil())
	}
	return jen.Var().Defs(is(outbox("Store")), is(outbox("Listener")), is(inbox("Store").Types(txType())))
}

// newStore makes:
//
//	// NewStore returns a store on pool, which remains the caller's to close.
//	func NewStore(pool *pgxpool.Pool) *Store {
//		return &Store{pool: pool, db: outboxdb.New(planned{pool})}
//	}
func (g *generator) newStore() jen.Code {
	return comment("NewStore returns a store on pool, which remains the caller's to close.").Line().
		Func().Id("NewStore").Params(poolParam()).Op("*").Id("Store").
		Block(jen.Return(jen.Op("&").Id("Store").Values(
			pair("pool", jen.Id("pool")),
			pair("db", g.outboxdb("New").Call(jen.Id("planned").Values(jen.Id("pool")))),
		)))
}

// poolParam makes:
//
//	pool *pgxpool.Pool
func poolParam() *jen.Statement { return jen.Id("pool").Op("*").Add(pgxpool("Pool")) }

// storeDoorbell makes:
//
//	// Doorbell implements outbox.Store.
//	func (s *Store) Doorbell() *outbox.Doorbell { return &doorbell }
func storeDoorbell() jen.Code {
	return method("Doorbell", "outbox.Store").Params().Op("*").Add(outbox("Doorbell")).
		Add(shortBody(jen.Return(jen.Op("&").Id("doorbell"))))
}

// storeMaintain makes:
//
//	// Maintain implements outbox.Store.
//	func (s *Store) Maintain(ctx context.Context) error {
//		if err := s.db.Maintain(ctx, Retention.Microseconds()); err != nil {
//			return fmt.Errorf("outbox: maintain: %w", err)
//		}
//		return nil
//	}
func storeMaintain() jen.Code {
	return method("Maintain", "outbox.Store").Params(ctxParam()).Error().Block(
		try(query("Maintain", microseconds("Retention")), failure("outbox: maintain")),
		jen.Return(jen.Nil()),
	)
}

// method makes the beginning of a method that implements an interface's:
//
//	// Take implements outbox.Membership.
//	func (s *Store) Take
func method(name, iface string) *jen.Statement { return describedMethod(name, "implements "+iface+".") }

// describedMethod makes the beginning of a method:
//
//	// Take does this and that.
//	func (s *Store) Take
func describedMethod(name, description string) *jen.Statement {
	return comment(name + " " + description).Line().
		Func().Params(jen.Id("s").Op("*").Id("Store")).Id(name)
}

// query makes:
//
//	s.db.TakeShards(ctx, arguments)
func query(name string, arguments ...jen.Code) *jen.Statement {
	return selector("s", "db", name).Call(append([]jen.Code{jen.Id("ctx")}, arguments...)...)
}

// queryInTx makes:
//
//	s.db.WithTx(tx).ClaimEvent(ctx, arguments)
func queryInTx(name string, arguments ...jen.Code) *jen.Statement {
	return selector("s", "db", "WithTx").Call(jen.Id("tx")).Dot(name).Call(append([]jen.Code{jen.Id("ctx")}, arguments...)...)
}

// params makes a query's parameters:
//
//	outboxdb.InsertRelayParams{Relay: relay, LeaseUs: lease.Microseconds()}
func (g *generator) params(query string, pairs ...jen.Code) *jen.Statement {
	return g.outboxdb(query + "Params").Values(pairs...)
}

// microseconds makes:
//
//	lease.Microseconds()
func microseconds(first string, rest ...string) *jen.Statement {
	return selector(first, rest...).Dot("Microseconds").Call()
}

// int32Of makes:
//
//	int32(r.Limit)
func int32Of(first string, rest ...string) *jen.Statement {
	return jen.Int32().Call(selector(first, rest...))
}

// returnCount makes:
//
//	return int(n), nil
func returnCount() jen.Code { return jen.Return(jen.Int().Call(jen.Id("n")), jen.Nil()) }

// countResults makes:
//
//	(int, error)
func countResults() *jen.Statement { return results(jen.Int(), jen.Error()) }

// relayParam makes:
//
//	relay outbox.ID
func relayParam() jen.Code { return jen.Id("relay").Add(outbox("ID")) }

// sliceParam makes:
//
//	owned []outbox.Ownership
func sliceParam(name, of string) jen.Code { return jen.Id(name).Index().Add(outbox(of)) }
