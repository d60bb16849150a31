package outbox

import "context"

// HeaderTraceparent is the header that carries a trace (W3C Trace Context, 3.2).
const HeaderTraceparent = "traceparent"

type traceparentKey struct{}

// ContextWithTraceparent returns a context whose events carry the given W3C traceparent. Tracing libraries set it before
// an enqueue; the inbox sets it to that of the event being handled.
func ContextWithTraceparent(ctx context.Context, traceparent string) context.Context {
	return context.WithValue(ctx, traceparentKey{}, traceparent)
}

// Traceparent returns what ContextWithTraceparent set, or "".
func Traceparent(ctx context.Context) string {
	s, _ := ctx.Value(traceparentKey{}).(string)
	return s
}
