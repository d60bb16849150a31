package golang

import "github.com/dave/jennifer/jen"

// deadLettersMethods makes the methods of outbox.DeadLetters.
func (g *generator) deadLettersMethods() []jen.Code {
	return []jen.Code{
		g.listDead(),
		changeDead("Replay", "ReplayDead", "outbox: replay dead letters", ring()),
		changeDead("Discard", "DiscardDead", "outbox: discard dead letters", jen.Null()),
	}
}

// listDead makes:
//
//	// ListDead implements outbox.DeadLetters.
//	func (s *Store) ListDead(ctx context.Context, limit int) ([]outbox.DeadLetter, error) {
//		rows, err := s.db.ListDead(ctx, int32(limit))
//		if err != nil {
//			return nil, fmt.Errorf("outbox: list dead letters: %w", err)
//		}
//		letters := make([]outbox.DeadLetter, len(rows))
//		for i, r := range rows {
//			letters[i].Error, letters[i].DiedAt = r.LastError, r.DiedAt
//			if err := fillMessage(&letters[i].Message, outboxdb.ReadShardsRow{
//				Shard: r.Shard, Seq: r.Seq, …
//			}); err != nil {
//				return nil, err
//			}
//		}
//		return letters, nil
//	}
func (g *generator) listDead() jen.Code {
	row := g.outboxdb("ReadShardsRow").Add(valueLines(
		sameNamed("r", "Shard", "Seq", "ID", "Type", "Version", "Topic", "Key", "Payload"),
		sameNamed("r", "ContentType", "Headers", "CausationID", "Attempts", "CreatedAt"),
	))
	letter := func(field string) *jen.Statement { return jen.Id("letters").Index(jen.Id("i")).Dot(field) }
	return method("ListDead", "outbox.DeadLetters").Params(ctxParam(), jen.Id("limit").Int()).
		Add(results(jen.Index().Add(outbox("DeadLetter")), jen.Error())).
		Block(
			assign("rows", query("ListDead", int32Of("limit"))),
			ifFailed(failure("outbox: list dead letters"), jen.Nil()),
			makeSlice("letters", outbox("DeadLetter")),
			eachRow(
				jen.List(letter("Error"), letter("DiedAt")).Op("=").List(selector("r", "LastError"), selector("r", "DiedAt")),
				try(fillMessage(letter("Message"), row), jen.Err(), jen.Nil()),
			),
			jen.Return(jen.Id("letters"), jen.Nil()),
		)
}

// changeDead makes:
//
//	// Replay implements outbox.DeadLetters.
//	func (s *Store) Replay(ctx context.Context, ids ...outbox.ID) (int, error) {
//		n, err := s.db.ReplayDead(ctx, texts(ids))
//		if err != nil {
//			return 0, fmt.Errorf("outbox: replay dead letters: %w", err)
//		}
//		doorbell.Ring()
//		return int(n), nil
//	}
func changeDead(name, with, doing string, after jen.Code) jen.Code {
	return method(name, "outbox.DeadLetters").Params(ctxParam(), jen.Id("ids").Op("...").Add(outbox("ID"))).
		Add(countResults()).
		Block(
			assign("n", query(with, jen.Id("texts").Call(jen.Id("ids")))),
			ifFailed(failure(doing), jen.Lit(0)),
			after,
			returnCount(),
		)
}

// texts makes:
//
//	// texts returns ids as text, which pgx can send in each of its modes.
//	func texts(ids []outbox.ID) []string {
//		list := make([]string, len(ids))
//		for i, id := range ids {
//			list[i] = id.String()
//		}
//		return list
//	}
func texts() jen.Code {
	strings := jen.Index().String()
	return comment("texts returns ids as text, which pgx can send in each of its modes.").Line().
		Func().Id("texts").Params(jen.Id("ids").Index().Add(outbox("ID"))).Add(strings).Block(
		jen.Id("list").Op(":=").Make(strings, jen.Len(jen.Id("ids"))),
		jen.For(jen.List(jen.Id("i"), jen.Id("id")).Op(":=").Range().Id("ids")).Block(
			jen.Id("list").Index(jen.Id("i")).Op("=").Id("id").Dot("String").Call(),
		),
		jen.Return(jen.Id("list")),
	)
}
