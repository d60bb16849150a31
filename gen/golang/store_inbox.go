package golang

import "github.com/dave/jennifer/jen"

// inboxMethods makes the methods of inbox.Store.
func (g *generator) inboxMethods() []jen.Code {
	return []jen.Code{inTx(), g.claim(), redispatch()}
}

// inTx makes:
//
//	// InTx implements inbox.Store.
//	func (s *Store) InTx(ctx context.Context, f func(tx pgx.Tx) error) error {
//		return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
//			if err := f(tx); err != nil {
//				return err
//			}
//			if tx.Conn().PgConn().TxStatus() == 'I' {
//				return inbox.ErrTxEnded
//			}
//			return nil
//		})
//	}
func inTx() jen.Code {
	status := selector("tx", "Conn").Call().Dot("PgConn").Call().Dot("TxStatus").Call()
	body := []jen.Code{
		try(jen.Id("f").Call(jen.Id("tx")), jen.Err()),
		jen.If(status.Op("==").LitRune('I')).Block(jen.Return(inbox("ErrTxEnded"))),
		jen.Return(jen.Nil()),
	}
	return method("InTx", "inbox.Store").Params(ctxParam(), jen.Id("f").Func().Params(txParam()).Error()).Error().
		Block(jen.Return(pgx("BeginTxFunc").Call(
			jen.Id("ctx"),
			selector("s", "pool"),
			pgx("TxOptions").Values(pair("IsoLevel", pgx("ReadCommitted"))),
			jen.Func().Params(txParam()).Error().Block(body...),
		)))
}

// claim makes:
//
//	// Claim implements inbox.Store.
//	func (s *Store) Claim(ctx context.Context, tx pgx.Tx, consumer string, event outbox.ID) (inbox.Claim, error) {
//		db := s.db.WithTx(tx)
//		n, err := db.ClaimFresh(ctx, outboxdb.ClaimFreshParams{Consumer: consumer, EventID: pgUUID(event)})
//		if err != nil {
//			return 0, fmt.Errorf("inbox: claim: %w", err)
//		}
//		if n == 1 {
//			return inbox.Fresh, nil
//		}
//		c, err := db.ClaimEvent(ctx, outboxdb.ClaimEventParams{EventID: pgUUID(event), Consumer: consumer})
//		switch {
//		case err != nil:
//			return 0, fmt.Errorf("inbox: claim: %w", err)
//		case !c.Locked:
//			return inbox.InFlight, nil
//		case c.Fresh:
//			return inbox.Fresh, nil
//		default:
//			return inbox.Duplicate, nil
//		}
//	}
func (g *generator) claim() jen.Code {
	params := func(query string) jen.Code {
		return g.params(query, pair("Consumer", jen.Id("consumer")), pair("EventID", pgUUID(jen.Id("event"))))
	}
	answer := func(name string) jen.Code { return jen.Return(inbox(name), jen.Nil()) }
	return method("Claim", "inbox.Store").
		Params(ctxParam(), txParam(), jen.Id("consumer").String(), jen.Id("event").Add(outbox("ID"))).
		Add(results(inbox("Claim"), jen.Error())).
		Block(
			jen.Id("db").Op(":=").Add(selector("s", "db", "WithTx")).Call(jen.Id("tx")),
			assign("n", selector("db", "ClaimFresh").Call(jen.Id("ctx"), params("ClaimFresh"))),
			ifFailed(failure("inbox: claim"), jen.Lit(0)),
			jen.If(jen.Id("n").Op("==").Lit(1)).Block(answer("Fresh")),
			assign("c", selector("db", "ClaimEvent").Call(jen.Id("ctx"), params("ClaimEvent"))),
			jen.Switch().Block(
				jen.Case(jen.Err().Op("!=").Nil()).Block(jen.Return(jen.Lit(0), failure("inbox: claim"))),
				jen.Case(jen.Op("!").Add(selector("c", "Locked"))).Block(answer("InFlight")),
				jen.Case(selector("c", "Fresh")).Block(answer("Fresh")),
				jen.Default().Block(answer("Duplicate")),
			),
		)
}

// redispatch makes:
//
//	// Redispatch implements inbox.Store.
//	func (s *Store) Redispatch(ctx context.Context, tx pgx.Tx, causation outbox.ID) (int, error) {
//		n, err := s.db.WithTx(tx).RedispatchCaused(ctx, pgUUID(causation))
//		if err != nil {
//			return 0, fmt.Errorf("inbox: redispatch: %w", err)
//		}
//		return int(n), nil
//	}
func redispatch() jen.Code {
	return method("Redispatch", "inbox.Store").Params(ctxParam(), txParam(), jen.Id("causation").Add(outbox("ID"))).
		Add(countResults()).
		Block(
			assign("n", queryInTx("RedispatchCaused", pgUUID(jen.Id("causation")))),
			ifFailed(failure("inbox: redispatch"), jen.Lit(0)),
			returnCount(),
		)
}
