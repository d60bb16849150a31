package golang

import "github.com/dave/jennifer/jen"

// planned makes the type that sqlc's queries run on, except in a transaction of the caller's:
//
//	// planned has statements planned as outboxdb.PlanRead and outboxdb.PlanWrite say, …
//	type planned struct{ *pgxpool.Pool }
//
// and the rows that its queries return:
//
//	// plannedRows end their transaction, and give its connection back, when they end.
//	type plannedRows struct {
//		pgx.Rows
//		results pgx.BatchResults
//		closed  bool
//		ended   error
//	}
func (g *generator) planned() []jen.Code {
	return []jen.Code{
		comment("planned has statements planned as outboxdb.PlanRead and outboxdb.PlanWrite say, whatever the server knows of the tables. " +
			"That and the statement are one transaction and one round trip.").Line().
			Type().Id("planned").Struct(jen.Op("*").Add(pgxpool("Pool"))),
		g.plannedExec(),
		g.plannedQuery(),
		sendPlanned(),
		comment("plannedRows end their transaction, and give its connection back, when they end.").Line().
			Type().Id("plannedRows").Struct(
			pgx("Rows"),
			jen.Id("results").Add(pgx("BatchResults")),
			jen.Id("closed").Bool(),
			jen.Id("ended").Error(),
		),
		plannedRowsNext(),
		plannedRowsClose(),
		plannedRowsErr(),
	}
}

// plannedExec makes:
//
//	// Exec implements outboxdb.DBTX.
//	func (p planned) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
//		results := p.send(ctx, outboxdb.PlanWrite, sql, args)
//		tag, err := results.Exec()
//		if ended := results.Close(); err == nil {
//			err = ended
//		}
//		return tag, err
//	}
func (g *generator) plannedExec() jen.Code {
	return plannedMethod("Exec", results(pgconn("CommandTag"), jen.Error())).Block(
		g.sent("PlanWrite"),
		assign("tag", selector("results", "Exec").Call()),
		jen.If(jen.Id("ended").Op(":=").Add(selector("results", "Close").Call()), jen.Err().Op("==").Nil()).
			Block(jen.Err().Op("=").Id("ended")),
		jen.Return(jen.Id("tag"), jen.Err()),
	)
}

// plannedQuery makes:
//
//	// Query implements outboxdb.DBTX.
//	func (p planned) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
//		results := p.send(ctx, outboxdb.PlanRead, sql, args)
//		rows, err := results.Query()
//		if err != nil {
//			_ = results.Close()
//			return nil, err
//		}
//		return &plannedRows{Rows: rows, results: results}, nil
//	}
func (g *generator) plannedQuery() jen.Code {
	return plannedMethod("Query", results(pgx("Rows"), jen.Error())).Block(
		g.sent("PlanRead"),
		assign("rows", selector("results", "Query").Call()),
		jen.If(jen.Err().Op("!=").Nil()).Block(
			jen.Id("_").Op("=").Add(selector("results", "Close").Call()),
			jen.Return(jen.Nil(), jen.Err()),
		),
		jen.Return(jen.Op("&").Id("plannedRows").Values(
			pair("Rows", jen.Id("rows")), pair("results", jen.Id("results"))), jen.Nil()),
	)
}

// plannedMethod makes:
//
//	// Exec implements outboxdb.DBTX.
//	func (p planned) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
func plannedMethod(name string, results jen.Code) *jen.Statement {
	return comment(name+" implements outboxdb.DBTX.").Line().
		Func().Params(jen.Id("p").Id("planned")).Id(name).
		Params(ctxParam(), jen.Id("sql").String(), jen.Id("args").Op("...").Any()).Add(results)
}

// sent makes:
//
//	results := p.send(ctx, outboxdb.PlanRead, sql, args)
func (g *generator) sent(plan string) jen.Code {
	return jen.Id("results").Op(":=").Add(selector("p", "send")).
		Call(jen.Id("ctx"), g.outboxdb(plan), jen.Id("sql"), jen.Id("args"))
}

// sendPlanned makes:
//
//	func (p planned) send(ctx context.Context, plan, sql string, args []any) pgx.BatchResults {
//		batch := &pgx.Batch{}
//		batch.Queue(plan)
//		batch.Queue(sql, args...)
//		results := p.Pool.SendBatch(ctx, batch)
//		_, _ = results.Exec() // where it fails, the statement fails with the same error
//		return results
//	}
func sendPlanned() jen.Code {
	return jen.Func().Params(jen.Id("p").Id("planned")).Id("send").
		Params(ctxParam(), jen.List(jen.Id("plan"), jen.Id("sql")).String(), jen.Id("args").Index().Any()).Add(pgx("BatchResults")).
		Block(
			jen.Id("batch").Op(":=").Op("&").Add(pgx("Batch")).Values(),
			selector("batch", "Queue").Call(jen.Id("plan")),
			selector("batch", "Queue").Call(jen.Id("sql"), jen.Id("args").Op("...")),
			jen.Id("results").Op(":=").Add(selector("p", "Pool", "SendBatch")).Call(jen.Id("ctx"), jen.Id("batch")),
			jen.List(jen.Id("_"), jen.Id("_")).Op("=").Add(selector("results", "Exec").Call()).
				Comment("where it fails, the statement fails with the same error"),
			jen.Return(jen.Id("results")),
		)
}

// plannedRowsNext makes:
//
//	// Next implements pgx.Rows.
//	func (r *plannedRows) Next() bool {
//		more := r.Rows.Next()
//		if !more {
//			r.Close()
//		}
//		return more
//	}
func plannedRowsNext() jen.Code {
	return plannedRowsMethod("Next", jen.Bool()).Block(
		jen.Id("more").Op(":=").Add(selector("r", "Rows", "Next").Call()),
		jen.If(jen.Op("!").Id("more")).Block(selector("r", "Close").Call()),
		jen.Return(jen.Id("more")),
	)
}

// plannedRowsClose makes:
//
//	// Close implements pgx.Rows.
//	func (r *plannedRows) Close() {
//		r.Rows.Close()
//		if !r.closed {
//			// A second time, the connection would be another's.
//			r.closed, r.ended = true, r.results.Close()
//		}
//	}
func plannedRowsClose() jen.Code {
	return plannedRowsMethod("Close", jen.Null()).Block(
		selector("r", "Rows", "Close").Call(),
		jen.If(jen.Op("!").Add(selector("r", "closed"))).Block(
			jen.Comment("A second time, the connection would be another's."),
			jen.List(selector("r", "closed"), selector("r", "ended")).Op("=").List(jen.True(), selector("r", "results", "Close").Call()),
		),
	)
}

// plannedRowsErr makes:
//
//	// Err implements pgx.Rows.
//	func (r *plannedRows) Err() error {
//		if err := r.Rows.Err(); err != nil {
//			return err
//		}
//		return r.ended
//	}
func plannedRowsErr() jen.Code {
	return plannedRowsMethod("Err", jen.Error()).Block(
		try(selector("r", "Rows", "Err").Call(), jen.Err()),
		jen.Return(selector("r", "ended")),
	)
}

// plannedRowsMethod makes:
//
//	// Next implements pgx.Rows.
//	func (r *plannedRows) Next() bool
func plannedRowsMethod(name string, result jen.Code) *jen.Statement {
	return comment(name + " implements pgx.Rows.").Line().
		Func().Params(jen.Id("r").Op("*").Id("plannedRows")).Id(name).Params().Add(result)
}
