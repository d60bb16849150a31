package outbox

import (
	"context"
	"strings"
)

// HeaderTraceparent is the header that carries a trace (W3C Trace Context, 3.2).
const HeaderTraceparent = "traceparent"

type traceparentKey struct{}

// ContextWithTraceparent returns a context whose events carry the given W3C traceparent. Tracing
// libraries set it before an enqueue; the inbox sets it to that of the event being handled. One
// that is invalid is ignored, as if there were none: the context is returned as it is.
func ContextWithTraceparent(ctx context.Context, traceparent string) context.Context {
	if !isTraceparent(traceparent) {
		return ctx
	}
	return context.WithValue(ctx, traceparentKey{}, traceparent)
}

// Traceparent returns what ContextWithTraceparent set, or "".
func Traceparent(ctx context.Context) string {
	s, _ := ctx.Value(traceparentKey{}).(string)
	return s
}

const (
	traceparentBytes    = 55  // of version 00
	maxTraceparentBytes = 512 // of a version to come, which may be longer
)

// isTraceparent reports whether s is valid by W3C Trace Context, 3.2: version, trace id, parent id
// and flags in lower-case hex. A version above 00 may have more behind another hyphen.
func isTraceparent(s string) bool {
	if len(s) < traceparentBytes || len(s) > maxTraceparentBytes {
		return false
	}
	head, more := s[:traceparentBytes], s[traceparentBytes:]
	version, traceID, parentID := head[:2], head[3:35], head[36:52]
	for i := range len(head) {
		isHyphen := i == 2 || i == 35 || i == 52
		if isHyphen != (head[i] == '-') ||
			!isHyphen && !strings.Contains("0123456789abcdef", head[i:i+1]) {
			return false
		}
	}
	for i := range len(more) {
		if more[i] <= ' ' || more[i] > '~' {
			return false
		}
	}
	return version != "ff" && strings.Trim(traceID, "0") != "" &&
		strings.Trim(parentID, "0") != "" &&
		(more == "" || version != "00" && more[0] == '-')
}
