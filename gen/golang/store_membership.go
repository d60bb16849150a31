package golang

import "github.com/dave/jennifer/jen"

// membershipMethods makes the methods of outbox.Membership.
func (g *generator) membershipMethods() []jen.Code {
	return []jen.Code{g.join(), g.renew(), g.take(), g.release(), leave()}
}

// join makes:
//
//	// Join implements outbox.Membership.
//	func (s *Store) Join(ctx context.Context, relay outbox.ID, lease time.Duration) error {
//		if err := s.db.InsertShards(ctx, Shards); err != nil {
//			return fmt.Errorf("outbox: add shards: %w", err)
//		}
//		if err := s.db.InsertRelay(ctx, outboxdb.InsertRelayParams{…}); err != nil {
//			return fmt.Errorf("outbox: join: %w", err)
//		}
//		return nil
//	}
func (g *generator) join() jen.Code {
	return method("Join", "outbox.Membership").Params(ctxParam(), relayParam(), leaseParam()).Error().Block(
		try(query("InsertShards", jen.Id("Shards")), failure("outbox: add shards")),
		try(query("InsertRelay", g.leaseParams("InsertRelay")), failure("outbox: join")),
		jen.Return(jen.Nil()),
	)
}

// renew makes:
//
//	// Renew implements outbox.Membership.
//	func (s *Store) Renew(ctx context.Context, relay outbox.ID, lease time.Duration) (outbox.Census, error) {
//		n, err := s.db.RenewRelay(ctx, outboxdb.RenewRelayParams{…})
//		if err != nil {
//			return outbox.Census{}, fmt.Errorf("outbox: renew: %w", err)
//		}
//		if n == 0 {
//			return outbox.Census{}, outbox.ErrLeaseLost
//		}
//		…
//		return outbox.Census{Relays: int(c.Relays), Shards: int(c.Shards)}, nil
//	}
func (g *generator) renew() jen.Code {
	none := outbox("Census").Values()
	return method("Renew", "outbox.Membership").Params(ctxParam(), relayParam(), leaseParam()).
		Add(results(outbox("Census"), jen.Error())).
		Block(
			assign("n", query("RenewRelay", g.leaseParams("RenewRelay"))),
			ifFailed(failure("outbox: renew"), none),
			jen.If(jen.Id("n").Op("==").Lit(0)).Block(jen.Return(none, outbox("ErrLeaseLost"))),
			assign("c", query("CountRelaysAndShards")),
			ifFailed(failure("outbox: count relays"), none),
			jen.Return(outbox("Census").Values(
				pair("Relays", jen.Int().Call(selector("c", "Relays"))),
				pair("Shards", jen.Int().Call(selector("c", "Shards"))),
			), jen.Nil()),
		)
}

// take makes:
//
//	// Take implements outbox.Membership.
//	func (s *Store) Take(ctx context.Context, relay outbox.ID, n int, held []outbox.Ownership) ([]outbox.Ownership, error) {
//		if err := s.db.DeleteExpiredRelays(ctx); err != nil {
//			return nil, fmt.Errorf("outbox: forget expired relays: %w", err)
//		}
//		shards, _ := ownedColumns(held)
//		rows, err := s.db.TakeShards(ctx, outboxdb.TakeShardsParams{Relay: pgUUID(relay), Held: shards, Count: int32(n)})
//		if err != nil {
//			return nil, fmt.Errorf("outbox: take shards: %w", err)
//		}
//		owned := make([]outbox.Ownership, len(rows))
//		for i, r := range rows {
//			owned[i] = outbox.Ownership{Shard: r.Shard, Fence: r.Fence, Suspect: r.Suspect}
//		}
//		return owned, nil
//	}
func (g *generator) take() jen.Code {
	params := g.params("TakeShards",
		pair("Relay", pgUUID(jen.Id("relay"))), pair("Held", jen.Id("shards")), pair("Count", int32Of("n")))
	return method("Take", "outbox.Membership").
		Params(ctxParam(), relayParam(), jen.Id("n").Int(), sliceParam("held", "Ownership")).
		Add(results(jen.Index().Add(outbox("Ownership")), jen.Error())).
		Block(
			try(query("DeleteExpiredRelays"), failure("outbox: forget expired relays"), jen.Nil()),
			jen.List(jen.Id("shards"), jen.Id("_")).Op(":=").Id("ownedColumns").Call(jen.Id("held")),
			assign("rows", query("TakeShards", params)),
			ifFailed(failure("outbox: take shards"), jen.Nil()),
			makeSlice("owned", outbox("Ownership")),
			eachRow(
				jen.Id("owned").Index(jen.Id("i")).Op("=").Add(outbox("Ownership")).Values(sameNamed("r", "Shard", "Fence", "Suspect")),
			),
			jen.Return(jen.Id("owned"), jen.Nil()),
		)
}

// release makes:
//
//	// Release implements outbox.Membership.
//	func (s *Store) Release(ctx context.Context, relay outbox.ID, owned []outbox.Ownership) error {
//		shards, fences := ownedColumns(owned)
//		if err := s.db.ReleaseShards(ctx, outboxdb.ReleaseShardsParams{Relay: pgUUID(relay), Shards: shards, Fences: fences}); err != nil {
//			return fmt.Errorf("outbox: release shards: %w", err)
//		}
//		return nil
//	}
func (g *generator) release() jen.Code {
	params := g.params("ReleaseShards",
		pair("Relay", pgUUID(jen.Id("relay"))), pair("Shards", jen.Id("shards")), pair("Fences", jen.Id("fences")))
	return method("Release", "outbox.Membership").Params(ctxParam(), relayParam(), sliceParam("owned", "Ownership")).Error().Block(
		jen.List(jen.Id("shards"), jen.Id("fences")).Op(":=").Id("ownedColumns").Call(jen.Id("owned")),
		try(query("ReleaseShards", params), failure("outbox: release shards")),
		jen.Return(jen.Nil()),
	)
}

// leave makes:
//
//	// Leave implements outbox.Membership.
//	func (s *Store) Leave(ctx context.Context, relay outbox.ID) error {
//		if err := s.db.LeaveRelay(ctx, pgUUID(relay)); err != nil {
//			return fmt.Errorf("outbox: leave: %w", err)
//		}
//		return nil
//	}
func leave() jen.Code {
	return method("Leave", "outbox.Membership").Params(ctxParam(), relayParam()).Error().Block(
		try(query("LeaveRelay", pgUUID(jen.Id("relay"))), failure("outbox: leave")),
		jen.Return(jen.Nil()),
	)
}

// ownedColumns makes:
//
//	// ownedColumns returns slices that are not nil, since nil is NULL in SQL.
//	func ownedColumns(owned []outbox.Ownership) (shards []int32, fences []int64) {
//		shards, fences = make([]int32, 0, len(owned)), make([]int64, 0, len(owned))
//		for _, o := range owned {
//			shards = append(shards, o.Shard)
//			fences = append(fences, o.Fence)
//		}
//		return shards, fences
//	}
func ownedColumns() jen.Code {
	return comment("ownedColumns returns slices that are not nil, since nil is NULL in SQL.").Line().
		Func().Id("ownedColumns").Params(sliceParam("owned", "Ownership")).
		Params(jen.Id("shards").Index().Int32(), jen.Id("fences").Index().Int64()).
		Block(
			jen.List(jen.Id("shards"), jen.Id("fences")).Op("=").
				List(makeEmpty(jen.Int32(), "owned"), makeEmpty(jen.Int64(), "owned")),
			each("o", "owned",
				appended(jen.Id("shards"), selector("o", "Shard")),
				appended(jen.Id("fences"), selector("o", "Fence")),
			),
			jen.Return(jen.Id("shards"), jen.Id("fences")),
		)
}

// leaseParam makes:
//
//	lease time.Duration
func leaseParam() jen.Code { return jen.Id("lease").Qual("time", "Duration") }

// leaseParams makes:
//
//	outboxdb.RenewRelayParams{Relay: pgUUID(relay), LeaseUs: lease.Microseconds()}
func (g *generator) leaseParams(query string) jen.Code {
	return g.params(query, pair("Relay", pgUUID(jen.Id("relay"))), pair("LeaseUs", microseconds("lease")))
}

// makeSlice makes:
//
//	owned := make([]outbox.Ownership, len(rows))
func makeSlice(name string, of jen.Code) jen.Code {
	return jen.Id(name).Op(":=").Make(jen.Index().Add(of), jen.Len(jen.Id("rows")))
}

// makeEmpty makes:
//
//	make([]int32, 0, len(owned))
func makeEmpty(of jen.Code, room string) jen.Code {
	return jen.Make(jen.Index().Add(of), jen.Lit(0), jen.Len(jen.Id(room)))
}

// eachRow makes:
//
//	for i, r := range rows {
//		…
//	}
func eachRow(body ...jen.Code) jen.Code {
	return jen.For(jen.List(jen.Id("i"), jen.Id("r")).Op(":=").Range().Id("rows")).Block(body...)
}
