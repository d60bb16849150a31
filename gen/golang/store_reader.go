package golang

import "github.com/dave/jennifer/jen"

// readerMethods makes the methods of outbox.Reader.
func (g *generator) readerMethods() []jen.Code {
	return []jen.Code{g.read(), g.readDue(), g.readKeys(), mark(), snapshot()}
}

// read makes:
//
//	// Read implements outbox.Reader.
//	func (s *Store) Read(ctx context.Context, reads []outbox.ShardRead, known []int64, maxBytes int) ([]outbox.Message, error) {
//		shards, afters, limits := readColumns(reads)
//		rows, err := s.db.ReadShards(ctx, outboxdb.ReadShardsParams{
//			Shards: shards, Afters: afters, Limits: limits,
//			Known: known, MaxBytes: int64(maxBytes),
//		})
//		if err != nil {
//			return nil, fmt.Errorf("outbox: read: %w", err)
//		}
//		if !slices.ContainsFunc(rows, func(r *outboxdb.ReadShardsRow) bool { return r.Payload == nil }) {
//			return messages(rows)
//		}
//		large, err := s.db.ReadLarge(ctx, outboxdb.ReadLargeParams{
//			…
//		})
//		if err != nil {
//			return nil, fmt.Errorf("outbox: read large events: %w", err)
//		}
//		return messages(large)
//	}
func (g *generator) read() jen.Code {
	params := func(query string) jen.Code {
		return g.outboxdb(query + "Params").Add(valueLines(
			shardReadPairs(),
			jen.List(pair("Known", jen.Id("known")), pair("MaxBytes", jen.Int64().Call(jen.Id("maxBytes")))),
		))
	}
	leftOut := jen.Func().Params(jen.Id("r").Op("*").Add(g.outboxdb("ReadShardsRow"))).Bool().
		Add(shortBody(jen.Return(selector("r", "Payload").Op("==").Nil())))
	return method("Read", "outbox.Reader").
		Params(ctxParam(), sliceParam("reads", "ShardRead"), jen.Id("known").Index().Int64(), jen.Id("maxBytes").Int()).
		Add(messageResults()).
		Block(
			splitReads(),
			assign("rows", query("ReadShards", params("ReadShards"))),
			ifFailed(failure("outbox: read"), jen.Nil()),
			jen.If(jen.Op("!").Qual("slices", "ContainsFunc").Call(jen.Id("rows"), leftOut)).
				Block(jen.Return(jen.Id("messages").Call(jen.Id("rows")))),
			assign("large", query("ReadLarge", params("ReadLarge"))),
			ifFailed(failure("outbox: read large events"), jen.Nil()),
			jen.Return(jen.Id("messages").Call(jen.Id("large"))),
		)
}

// readDue makes:
//
//	// ReadDue implements outbox.Reader.
//	func (s *Store) ReadDue(ctx context.Context, reads []outbox.ShardRead, known []int64) ([]outbox.Message, error) {
//		shards, afters, limits := readColumns(reads)
//		rows, err := s.db.ReadDue(ctx, outboxdb.ReadDueParams{Shards: shards, Afters: afters, Limits: limits, Known: known})
//		if err != nil {
//			return nil, fmt.Errorf("outbox: read due events: %w", err)
//		}
//		return messages(rows)
//	}
func (g *generator) readDue() jen.Code {
	params := g.params("ReadDue", shardReadPairs(), pair("Known", jen.Id("known")))
	return method("ReadDue", "outbox.Reader").
		Params(ctxParam(), sliceParam("reads", "ShardRead"), jen.Id("known").Index().Int64()).
		Add(messageResults()).
		Block(append([]jen.Code{splitReads()}, readMessages("ReadDue", params, "outbox: read due events")...)...)
}

// readKeys makes:
//
//	// ReadKeys implements outbox.Reader.
//	func (s *Store) ReadKeys(ctx context.Context, keys []outbox.KeyRead) ([]outbox.Message, error) {
//		var p outboxdb.ReadKeysParams
//		for _, k := range keys {
//			p.Shards = append(p.Shards, k.Shard)
//			…
//		}
//		rows, err := s.db.ReadKeys(ctx, p)
//		if err != nil {
//			return nil, fmt.Errorf("outbox: read keys: %w", err)
//		}
//		return messages(rows)
//	}
func (g *generator) readKeys() jen.Code {
	body := []jen.Code{
		jen.Var().Id("p").Add(g.outboxdb("ReadKeysParams")),
		each("k", "keys",
			appended(selector("p", "Shards"), selector("k", "Shard")),
			appended(selector("p", "Keys"), selector("k", "Key")),
			appended(selector("p", "Froms"), selector("k", "From")),
			appended(selector("p", "Tos"), selector("k", "To")),
			appended(selector("p", "Limits"), int32Of("k", "Limit")),
		),
	}
	return method("ReadKeys", "outbox.Reader").Params(ctxParam(), sliceParam("keys", "KeyRead")).
		Add(messageResults()).
		Block(append(body, readMessages("ReadKeys", jen.Id("p"), "outbox: read keys")...)...)
}

// mark makes:
//
//	// Mark implements outbox.Reader.
//	func (s *Store) Mark(ctx context.Context) (outbox.Mark, error) {
//		m, err := s.db.MarkSequence(ctx)
//		if err != nil {
//			return outbox.Mark{}, fmt.Errorf("outbox: mark: %w", err)
//		}
//		return outbox.Mark{Seq: m.Seq, Xid: uint64(m.Xid)}, nil
//	}
func mark() jen.Code {
	return method("Mark", "outbox.Reader").Params(ctxParam()).Add(results(outbox("Mark"), jen.Error())).Block(
		assign("m", query("MarkSequence")),
		ifFailed(failure("outbox: mark"), outbox("Mark").Values()),
		jen.Return(outbox("Mark").Values(
			pair("Seq", selector("m", "Seq")),
			pair("Xid", jen.Uint64().Call(selector("m", "Xid"))),
		), jen.Nil()),
	)
}

// snapshot makes:
//
//	// Snapshot implements outbox.Reader.
//	func (s *Store) Snapshot(ctx context.Context) (outbox.Snapshot, error) {
//		r, err := s.db.TakeSnapshot(ctx)
//		if err != nil {
//			return outbox.Snapshot{}, fmt.Errorf("outbox: snapshot: %w", err)
//		}
//		snapshot := outbox.Snapshot{Xmin: uint64(r.Xmin), Xmax: uint64(r.Xmax)}
//		for _, xid := range r.InProgress {
//			snapshot.InProgress = append(snapshot.InProgress, uint64(xid))
//		}
//		return snapshot, nil
//	}
func snapshot() jen.Code {
	return method("Snapshot", "outbox.Reader").Params(ctxParam()).Add(results(outbox("Snapshot"), jen.Error())).Block(
		assign("r", query("TakeSnapshot")),
		ifFailed(failure("outbox: snapshot"), outbox("Snapshot").Values()),
		jen.Id("snapshot").Op(":=").Add(outbox("Snapshot")).Values(
			pair("Xmin", jen.Uint64().Call(selector("r", "Xmin"))),
			pair("Xmax", jen.Uint64().Call(selector("r", "Xmax"))),
		),
		jen.For(jen.List(jen.Id("_"), jen.Id("xid")).Op(":=").Range().Add(selector("r", "InProgress"))).
			Block(appended(selector("snapshot", "InProgress"), jen.Uint64().Call(jen.Id("xid")))),
		jen.Return(jen.Id("snapshot"), jen.Nil()),
	)
}

// messageResults makes:
//
//	([]outbox.Message, error)
func messageResults() *jen.Statement {
	return results(jen.Index().Add(outbox("Message")), jen.Error())
}

// splitReads makes:
//
//	shards, afters, limits := readColumns(reads)
func splitReads() jen.Code {
	return jen.List(jen.Id("shards"), jen.Id("afters"), jen.Id("limits")).Op(":=").Id("readColumns").Call(jen.Id("reads"))
}

// shardReadPairs makes:
//
//	Shards: shards, Afters: afters, Limits: limits
func shardReadPairs() jen.Code {
	return jen.List(pair("Shards", jen.Id("shards")), pair("Afters", jen.Id("afters")), pair("Limits", jen.Id("limits")))
}

// readMessages makes:
//
//	rows, err := s.db.ReadDue(ctx, params)
//	if err != nil {
//		return nil, fmt.Errorf("outbox: read due events: %w", err)
//	}
//	return messages(rows)
func readMessages(name string, params jen.Code, doing string) []jen.Code {
	return []jen.Code{
		assign("rows", query(name, params)),
		ifFailed(failure(doing), jen.Nil()),
		jen.Return(jen.Id("messages").Call(jen.Id("rows"))),
	}
}

// readColumns makes:
//
//	func readColumns(reads []outbox.ShardRead) (shards []int32, afters []int64, limits []int32) {
//		for _, r := range reads {
//			shards = append(shards, r.Shard)
//			…
//		}
//		return shards, afters, limits
//	}
func readColumns() jen.Code {
	return jen.Func().Id("readColumns").Params(sliceParam("reads", "ShardRead")).
		Params(jen.Id("shards").Index().Int32(), jen.Id("afters").Index().Int64(), jen.Id("limits").Index().Int32()).
		Block(
			each("r", "reads",
				appended(jen.Id("shards"), selector("r", "Shard")),
				appended(jen.Id("afters"), selector("r", "After")),
				appended(jen.Id("limits"), int32Of("r", "Limit")),
			),
			jen.Return(jen.Id("shards"), jen.Id("afters"), jen.Id("limits")),
		)
}

// messageFunction makes:
//
//	// fillMessage makes of m what the relay makes of a row. …
//	func fillMessage(m *outbox.Message, r outboxdb.ReadShardsRow) error {
//		*m = outbox.Message{
//			Type: r.Type, …
//		}
//		if r.Headers == nil {
//			return nil
//		}
//		if err := json.Unmarshal(r.Headers, &m.Headers); err != nil {
//			return fmt.Errorf("outbox: the headers of event %s are not a JSON object of strings", m.ID)
//		}
//		return nil
//	}
func (g *generator) messageFunction() jen.Code {
	return comment("fillMessage makes of m what the relay makes of a row. The four reading queries return the same columns.").Line().
		Func().Id("fillMessage").
		Params(jen.Id("m").Op("*").Add(outbox("Message")), jen.Id("r").Add(g.outboxdb("ReadShardsRow"))).
		Error().
		Block(
			jen.Op("*").Id("m").Op("=").Add(outbox("Message")).Add(valueLines(
				sameNamed("r", "Type", "Version", "Topic", "Key", "Payload", "ContentType"),
				sameNamed("r", "CreatedAt", "Attempts", "Begun", "Waiting"),
				jen.List(
					pair("Source", jen.Id("Service")),
					pair("ID", selector("r", "ID", "Bytes")),
					pair("CausationID", selector("r", "CausationID", "Bytes")),
					pair("Position", outbox("Position").Values(sameNamed("r", "Shard", "Seq"))),
				),
			)),
			jen.If(selector("r", "Headers").Op("==").Nil()).Block(jen.Return(jen.Nil())),
			try(
				jen.Qual("encoding/json", "Unmarshal").Call(selector("r", "Headers"), jen.Op("&").Add(selector("m", "Headers"))),
				jen.Qual("fmt", "Errorf").Call(
					jen.Lit("outbox: the headers of event %s are not a JSON object of strings"), selector("m", "ID")),
			),
			jen.Return(jen.Nil()),
		)
}

// messagesFunction makes:
//
//	func messages[R …](rows []*R) ([]outbox.Message, error) {
//		out := make([]outbox.Message, len(rows))
//		for i, r := range rows {
//			if err := fillMessage(&out[i], outboxdb.ReadShardsRow(*r)); err != nil {
//				return nil, err
//			}
//		}
//		return out, nil
//	}
func (g *generator) messagesFunction() jen.Code {
	return jen.Func().Id("messages").
		Types(jen.Id("R").Union(
			g.outboxdb("ReadShardsRow"), g.outboxdb("ReadLargeRow"), g.outboxdb("ReadDueRow"), g.outboxdb("ReadKeysRow"))).
		Params(jen.Id("rows").Index().Op("*").Id("R")).
		Add(messageResults()).
		Block(
			makeSlice("out", outbox("Message")),
			eachRow(try(fillMessage(jen.Id("out").Index(jen.Id("i")), g.outboxdb("ReadShardsRow").Call(jen.Op("*").Id("r"))), jen.Err(), jen.Nil())),
			jen.Return(jen.Id("out"), jen.Nil()),
		)
}

// fillMessage makes:
//
//	fillMessage(&out[i], row)
func fillMessage(out *jen.Statement, row jen.Code) jen.Code {
	return jen.Id("fillMessage").Call(jen.Op("&").Add(out), row)
}
