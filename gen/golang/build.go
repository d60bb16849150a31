package golang

import (
	"strconv"

	"github.com/dave/jennifer/jen"
	"github.com/outboxgen/outboxgen/gen/dialect"
)

// What follows are the building blocks that the constructs are made of.

// selector makes a chain of selectors:
//
//	e.Order.ID
func selector(first string, rest ...string) *jen.Statement {
	s := jen.Id(first)
	for _, name := range rest {
		s.Dot(name)
	}
	return s
}

// pair makes an element of a struct literal:
//
//	Relay: relay
func pair(name string, value jen.Code) *jen.Statement { return jen.Id(name).Op(":").Add(value) }

// valueLines makes the braces of a literal with an element or more on each line:
//
//	{
//		Shard: r.Shard, Seq: r.Seq,
//		ID: r.ID,
//	}
func valueLines(lines ...jen.Code) *jen.Statement {
	return jen.Custom(jen.Options{Open: "{", Close: "}", Separator: ",", Multi: true}, lines...)
}

// argumentLines makes a call's parentheses with an argument or more on each line:
//
//	(
//		first, second,
//		third,
//	)
func argumentLines(lines ...jen.Code) *jen.Statement {
	return jen.Custom(jen.Options{Open: "(", Close: ")", Separator: ",", Multi: true}, lines...)
}

// longParams makes a function's parameters on a line of their own:
//
//	(
//		ctx context.Context, tx pgx.Tx,
//	)
func longParams(params ...jen.Code) *jen.Statement {
	return argumentLines(jen.List(params...))
}

// shortBody makes a function's body on the line of the function, if there is room:
//
//	{ return e.OrderID.String() }
func shortBody(statement jen.Code) *jen.Statement {
	return jen.Custom(jen.Options{Open: "{", Close: "}", Separator: ";"}, statement)
}

// ctxParam makes the parameter:
//
//	ctx context.Context
func ctxParam() *jen.Statement { return jen.Id("ctx").Qual("context", "Context") }

// txType makes the type of the transaction that generated code takes:
//
//	pgx.Tx
func (g *generator) txType() *jen.Statement { return driverType(g.dialect.Tx) }

// txParam makes the parameter:
//
//	tx pgx.Tx
func (g *generator) txParam() *jen.Statement { return jen.Id("tx").Add(g.txType()) }

// driverType makes a type of the database engine's driver:
//
//	*pgx.Batch
func driverType(t dialect.GoType) *jen.Statement {
	if t.Pointer {
		return jen.Op("*").Qual(t.Path, t.Name)
	}
	return jen.Qual(t.Path, t.Name)
}

// results makes a function's results:
//
//	(int, error)
func results(types ...jen.Code) *jen.Statement { return jen.Params(types...) }

// try makes:
//
//	if err := call; err != nil {
//		return zero, …, result
//	}
func try(call, result jen.Code, zeros ...jen.Code) *jen.Statement {
	return jen.If(jen.Err().Op(":=").Add(call), jen.Err().Op("!=").Nil()).
		Block(jen.Return(append(zeros, result)...))
}

// rawString makes a string between backquotes if possible; jennifer has no such strings:
//
//	`^[A-Z]{3}$`
func rawString(s string) *jen.Statement {
	if !strconv.CanBackquote(s) {
		return jen.Lit(s)
	}
	return jen.Id("`" + s + "`")
}

// integer makes an untyped number; jennifer would make int64(5):
//
//	5
func integer(n int64) *jen.Statement { return jen.Id(strconv.FormatInt(n, 10)) }

// number makes an untyped number of a literal that the catalogue has checked:
//
//	0.5
func number(literal string) (*jen.Statement, error) {
	if n, err := strconv.ParseInt(literal, 10, 64); err == nil {
		return integer(n), nil
	}
	x, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return nil, err
	}
	return jen.Lit(x + 0), nil // Go has no literal of -0, which this makes 0
}
