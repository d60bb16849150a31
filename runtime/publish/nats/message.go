package outboxnats

import (
	"iter"
	"maps"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/outboxgen/outboxgen/runtime/cloudevents"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// binding is the NATS Protocol Binding for CloudEvents 1.0. Headers that begin with Nats- tell the
// server what to do.
var binding = cloudevents.Binding{Prefix: "ce-", PercentEncoded: true, Reserved: "nats-"}

// messageOf returns m as it is published.
func messageOf(m *outbox.Message) (*nats.Msg, error) {
	header := make(nats.Header, len(m.Headers)+9)
	if err := binding.Encode(m, header.Set); err != nil {
		return nil, err
	}
	header.Set(jetstream.MsgIDHeader, messageID(m))
	return &nats.Msg{Subject: m.Topic, Header: header, Data: m.Payload}, nil
}

// messageID tells messages apart that a stream must not take for duplicates: two versions of one
// event share an id. Both attributes "id" and "source" are the same then, which CloudEvents allows
// for events that a consumer may take for duplicates; "type" differs.
func messageID(m *outbox.Message) string { return m.ID.String() + "/" + m.TypeName() }

// eventOf is the inverse of messageOf.
func eventOf(msg jetstream.Msg) (*outbox.Message, error) {
	return binding.Decode(msg.Subject(), headers(msg.Headers()), msg.Data())
}

// headers yields the first value of each header, by name, so that of several which differ in case
// the same one always counts. NATS leaves the case of names to the reader.
func headers(h nats.Header) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for _, name := range slices.Sorted(maps.Keys(h)) {
			if len(h[name]) > 0 && !yield(name, h[name][0]) {
				return
			}
		}
	}
}
