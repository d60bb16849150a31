package outbox

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// MaxHeaderBytes is how much the headers of an event may hold, names and values together.
const MaxHeaderBytes = 8192

// propagated has the headers that carry a trace from outside (W3C Trace Context and Baggage), in
// the order in which they get the room that is left. The service did not make them, so an invalid
// one is dropped, and the event is enqueued without it.
var propagated = []string{HeaderTraceparent, "tracestate", "baggage"}

// canonicalName returns the name in lower case if it is that of a propagated header.
func canonicalName(name string) string {
	if lower := strings.ToLower(name); slices.Contains(propagated, lower) {
		return lower
	}
	return name
}

// encodeHeaders returns headers as a JSON object, or nil for none.
func encodeHeaders(headers map[string]string) ([]byte, error) {
	kept, size := map[string]string{}, 0
	for name, value := range headers {
		if slices.Contains(propagated, name) {
			continue
		}
		if err := checkHeader(name, value); err != nil {
			return nil, err
		}
		kept[name], size = value, size+len(name)+len(value)
	}
	if size > MaxHeaderBytes {
		return nil,
			fmt.Errorf("headers have %d bytes, at most %d are allowed", size, MaxHeaderBytes)
	}
	addFitting(kept, size, headers, propagated)
	if len(kept) == 0 {
		return nil, nil
	}
	return json.Marshal(kept)
}

// AcceptHeaders returns those headers of a message from outside that an event can carry. Each can
// be passed to WithHeader. Names of propagated headers become lower case. Headers that are invalid,
// or have no room within MaxHeaderBytes in the order of their names, are left out; those of a trace
// come first.
func AcceptHeaders(headers map[string]string) map[string]string {
	given, kept := map[string]string{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		given[canonicalName(name)] = headers[name] // the lower case comes last, and counts
	}
	addFitting(kept, 0, given, append(slices.Clone(propagated), slices.Sorted(maps.Keys(given))...))
	return kept
}

// addFitting adds the named headers to kept, whose size is given, if they are valid and have room.
func addFitting(kept map[string]string, size int, headers map[string]string, names []string) {
	for _, name := range names {
		value, found := headers[name]
		_, known := kept[name]
		if !found || known || size+len(name)+len(value) > MaxHeaderBytes ||
			checkHeader(name, value) != nil {
			continue
		}
		// tracestate is part of traceparent (3.3)
		if name == "tracestate" && kept[HeaderTraceparent] == "" {
			continue
		}
		kept[name], size = value, size+len(name)+len(value)
	}
}

// checkHeader allows what every broker's headers can carry: a name that is a token (RFC 9110,
// 5.6.2), a value on one line.
func checkHeader(name, value string) error {
	if strings.HasPrefix(strings.ToLower(name), "ce-") {
		return fmt.Errorf("header %q: names that begin with ce- belong to CloudEvents", name)
	}
	if name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	}) {
		return fmt.Errorf("header %q: a name consists of letters, digits and !#$%%&'*+-.^_`|~",
			name)
	}
	if !storage.Storable(value) || strings.ContainsAny(value, "\r\n") ||
		strings.TrimSpace(value) != value {
		return fmt.Errorf(
			"header %q: the value is not one line of valid UTF-8 without blanks around it", name,
		)
	}
	if name == HeaderTraceparent && !isTraceparent(value) {
		return fmt.Errorf("header %q: not a traceparent", name)
	}
	return nil
}
