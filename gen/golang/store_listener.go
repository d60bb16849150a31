package golang

import "github.com/dave/jennifer/jen"

// listenerMethods makes the methods of outbox.Listener.
func listenerMethods() []jen.Code { return []jen.Code{listen(), notify()} }

// listen makes:
//
//	// Listen implements outbox.Listener, on a connection that leaves the pool.
//	func (s *Store) Listen(ctx context.Context, ready, ring func()) error {
//		acquired, err := s.pool.Acquire(ctx)
//		if err != nil {
//			return fmt.Errorf("outbox: listen: %w", err)
//		}
//		conn := acquired.Hijack()
//		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
//		if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
//			return fmt.Errorf("outbox: listen: %w", err)
//		}
//		ready()
//		for {
//			if _, err := conn.WaitForNotification(ctx); err != nil {
//				return fmt.Errorf("outbox: listen: %w", err)
//			}
//			ring()
//		}
//	}
func listen() jen.Code {
	closing := jen.Id("_").Op("=").Add(selector("conn", "Close")).
		Call(jen.Qual("context", "WithoutCancel").Call(jen.Id("ctx")))
	statement := jen.Lit("LISTEN ").Op("+").Add(pgx("Identifier")).Values(jen.Id("channel")).Dot("Sanitize").Call()
	return describedMethod("Listen", "implements outbox.Listener, on a connection that leaves the pool.").
		Params(ctxParam(), jen.List(jen.Id("ready"), jen.Id("ring")).Func().Params()).Error().
		Block(
			assign("acquired", selector("s", "pool", "Acquire").Call(jen.Id("ctx"))),
			ifFailed(failure("outbox: listen")),
			jen.Id("conn").Op(":=").Add(selector("acquired", "Hijack").Call()),
			jen.Defer().Func().Params().Add(shortBody(closing)).Call(),
			tryOnly(selector("conn", "Exec").Call(jen.Id("ctx"), statement), failure("outbox: listen")),
			jen.Id("ready").Call(),
			jen.For().Block(
				tryOnly(selector("conn", "WaitForNotification").Call(jen.Id("ctx")), failure("outbox: listen")),
				jen.Id("ring").Call(),
			),
		)
}

// tryOnly makes:
//
//	if _, err := call; err != nil {
//		return result
//	}
func tryOnly(call, result jen.Code) jen.Code {
	return jen.If(assign("_", call), jen.Err().Op("!=").Nil()).Block(jen.Return(result))
}

// notify makes:
//
//	// Notify implements outbox.Listener.
//	func (s *Store) Notify(ctx context.Context) error {
//		if err := s.db.RingDoorbell(ctx, channel); err != nil {
//			return fmt.Errorf("outbox: notify: %w", err)
//		}
//		return nil
//	}
func notify() jen.Code {
	return method("Notify", "outbox.Listener").Params(ctxParam()).Error().Block(
		try(query("RingDoorbell", jen.Id("channel")), failure("outbox: notify")),
		jen.Return(jen.Nil()),
	)
}
