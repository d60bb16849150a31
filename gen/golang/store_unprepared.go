package golang

import "github.com/dave/jennifer/jen"

// unprepared makes the type that sqlc's queries run on, except in a transaction of the caller's:
//
//	// unprepared has each statement planned when it is executed: …
//	type unprepared struct{ *pgxpool.Pool }
func unprepared() []jen.Code {
	name := jen.Id("unprepared").Struct(jen.Op("*").Add(pgxpool("Pool")))
	return []jen.Code{
		comment("unprepared has each statement planned when it is executed. The outbox is empty at one moment and holds a million " +
			"events at the next, and a plan that was kept from the one is wrong for the other. It also works behind a pooler " +
			"that shares connections by transaction.").Line().Type().Add(name),
		unpreparedMethod("Exec", results(pgconn("CommandTag"), jen.Error())),
		unpreparedMethod("Query", results(pgx("Rows"), jen.Error())),
		unpreparedMethod("QueryRow", pgx("Row")),
		prependMode(),
	}
}

// unpreparedMethod makes:
//
//	// Exec implements outboxdb.DBTX.
//	func (u unprepared) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
//		return u.Pool.Exec(ctx, sql, plannedNow(args)...)
//	}
func unpreparedMethod(name string, result jen.Code) jen.Code {
	return comment(name+" implements outboxdb.DBTX.").Line().
		Func().Params(jen.Id("u").Id("unprepared")).Id(name).
		Params(ctxParam(), jen.Id("sql").String(), jen.Id("args").Op("...").Any()).Add(result).
		Block(jen.Return(selector("u", "Pool", name).Call(
			jen.Id("ctx"), jen.Id("sql"), jen.Id("plannedNow").Call(jen.Id("args")).Op("..."))))
}

// prependMode makes:
//
//	func plannedNow(args []any) []any { return append([]any{pgx.QueryExecModeCacheDescribe}, args...) }
func prependMode() jen.Code {
	return jen.Func().Id("plannedNow").Params(jen.Id("args").Index().Any()).Index().Any().
		Add(shortBody(jen.Return(jen.Append(
			jen.Index().Any().Values(pgx("QueryExecModeCacheDescribe")), jen.Id("args").Op("...")))))
}
