package golang

import "github.com/dave/jennifer/jen"

// settlerMethods makes the methods of outbox.Settler.
func (g *generator) settlerMethods() []jen.Code {
	published := "MoveEventsToSent"
	if g.catalogue.Relay.Retention == 0 {
		published = "DeleteEvents"
	}
	return []jen.Code{
		g.settle(settling{
			method: "Retry", items: "retries", of: "Retry", query: "RetryEvents", doing: "outbox: record attempts",
			columns: []jen.Code{
				appended(selector("p", "Attempts"), selector("r", "Attempts")),
				appended(selector("p", "Begun"), selector("r", "Begun")),
				appended(selector("p", "DelaysUs"), microseconds("r", "Delay")),
				appended(selector("p", "Errors"), selector("r", "Error")),
			},
		}),
		g.settle(settling{
			method: "Published", items: "published", of: "Position", query: published, doing: "outbox: settle published events",
		}),
		g.settle(settling{
			method: "Bury", items: "deaths", of: "Death", query: "MoveEventsToDead", doing: "outbox: bury",
			columns: []jen.Code{
				appended(selector("p", "Attempts"), selector("r", "Attempts")),
				appended(selector("p", "Errors"), selector("r", "Error")),
			},
		}),
	}
}

// settling is what differs between the methods of outbox.Settler.
type settling struct {
	method    string
	items, of string // the last parameter
	query     string
	doing     string
	columns   []jen.Code // what is filled besides the seqs
}

// settle makes:
//
//	// Bury implements outbox.Settler.
//	func (s *Store) Bury(ctx context.Context, relay outbox.ID, owned []outbox.Ownership, deaths []outbox.Death) (int, error) {
//		p := outboxdb.MoveEventsToDeadParams{Relay: pgUUID(relay), Seqs: make([]int64, 0, len(deaths))}
//		p.OwnedShards, p.OwnedFences = ownedColumns(owned)
//		for _, r := range deaths {
//			p.Seqs = append(p.Seqs, r.Seq)
//			…
//		}
//		n, err := s.db.MoveEventsToDead(ctx, p)
//		if err != nil {
//			return 0, fmt.Errorf("outbox: bury: %w", err)
//		}
//		return int(n), nil
//	}
func (g *generator) settle(x settling) jen.Code {
	seqs := []jen.Code{appended(selector("p", "Seqs"), selector("r", "Seq"))}
	return method(x.method, "outbox.Settler").
		Params(ctxParam(), relayParam(), sliceParam("owned", "Ownership"), sliceParam(x.items, x.of)).
		Add(countResults()).
		Block(
			jen.Id("p").Op(":=").Add(g.params(x.query,
				pair("Relay", pgUUID(jen.Id("relay"))), pair("Seqs", makeEmpty(jen.Int64(), x.items)))),
			jen.List(selector("p", "OwnedShards"), selector("p", "OwnedFences")).Op("=").Id("ownedColumns").Call(jen.Id("owned")),
			each("r", x.items, append(seqs, x.columns...)...),
			assign("n", query(x.query, jen.Id("p"))),
			ifFailed(failure(x.doing), jen.Lit(0)),
			returnCount(),
		)
}
