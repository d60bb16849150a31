package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/outboxgen/outboxgen/runtime/payload"
)

// Limits on what an event may carry beside its payload.
const (
	MaxKeyBytes    = 1024
	MaxHeaderBytes = 8192 // names and values together
)

// ContentType is that of every payload which Encode makes.
const ContentType = "application/json"

// Many is from how many rows on generated code copies them to the database instead of inserting each.
const Many = 16

// Row is an event ready to be inserted.
type Row struct {
	Shard       int32
	ID          ID
	Type        string
	Version     int32
	Topic       string
	Key         string // "" for none
	Payload     []byte
	ContentType string
	Headers     []byte // a JSON object, or nil
	CausationID ID     // the zero ID for none
}

// EnqueueOption changes how events are enqueued.
type EnqueueOption func(*enqueueOptions)

type enqueueOptions struct {
	id        ID
	causation ID
	headers   map[string]string
}

// WithID gives the event an id of the caller's, so that a producer which runs twice produces the same event. It fits one event only.
func WithID(id ID) EnqueueOption { return func(o *enqueueOptions) { o.id = id } }

// WithCausation records the event whose handling caused this one.
func WithCausation(id ID) EnqueueOption { return func(o *enqueueOptions) { o.causation = id } }

// WithHeader adds a header to the message. Names are case-sensitive; those that begin with ce- are refused.
func WithHeader(name, value string) EnqueueOption {
	return func(o *enqueueOptions) {
		if o.headers == nil {
			o.headers = map[string]string{}
		}
		o.headers[name] = value
	}
}

// Encode checks events and turns them into rows for an outbox of the given number of shards. Nothing has reached the database
// when it fails, so the caller's transaction remains usable. Errors name the event's type and the field, never a value.
func Encode(ctx context.Context, shards int, events []Event, opts ...EnqueueOption) ([]Row, error) {
	o := enqueueOptions{}
	if traceparent := Traceparent(ctx); traceparent != "" {
		WithHeader(HeaderTraceparent, traceparent)(&o)
	}
	for _, opt := range opts {
		opt(&o)
	}
	if o.id != uuid.Nil && len(events) != 1 {
		return nil, fmt.Errorf("outbox: enqueue: WithID fits one event, not %d", len(events))
	}
	headers, err := encodeHeaders(o.headers)
	if err != nil {
		return nil, fmt.Errorf("outbox: enqueue: %w", err)
	}
	rows := make([]Row, len(events))
	for i, e := range events {
		if err := rows[i].encode(e, shards, o.id); err != nil {
			return nil, fmt.Errorf("outbox: enqueue %s: %w", e.EventType(), err)
		}
		rows[i].Headers = headers
		rows[i].CausationID = o.causation
	}
	return rows, nil
}

// encode makes a row of an event. It makes up an id where it is given none.
func (r *Row) encode(e Event, shards int, id ID) (err error) {
	t, key := e.EventType(), e.EventKey()
	if err := checkKey(t, key); err != nil {
		return err
	}
	if id == uuid.Nil {
		if id, err = uuid.NewV7(); err != nil {
			return err
		}
	}
	*r = Row{
		Shard: shardOf(key, shards), ID: id, Type: t.Name, Version: int32(t.Version), Topic: t.Topic, Key: key,
		ContentType: ContentType,
	}
	r.Payload, err = payload.Marshal(e)
	return err
}

// IDs returns the ids of rows.
func IDs(rows []Row) []ID {
	ids := make([]ID, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	return ids
}

// checkKey refuses what the database would refuse, which would cost the caller its transaction.
func checkKey(t EventType, key string) error {
	switch {
	case t.Ordering == OrderingNone:
		return nil
	case key == "":
		return fmt.Errorf("the key field is empty")
	case len(key) > MaxKeyBytes:
		return fmt.Errorf("the key has %d bytes, at most %d are allowed", len(key), MaxKeyBytes)
	case !storable(key):
		return fmt.Errorf("the key is not valid UTF-8, or contains a NUL")
	}
	return nil
}

// storable says whether a text column takes s.
func storable(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

func encodeHeaders(headers map[string]string) ([]byte, error) {
	if len(headers) == 0 {
		return nil, nil
	}
	size := 0
	for name, value := range headers {
		size += len(name) + len(value)
		if err := checkHeader(name, value); err != nil {
			return nil, err
		}
	}
	if size > MaxHeaderBytes {
		return nil, fmt.Errorf("headers have %d bytes, at most %d are allowed", size, MaxHeaderBytes)
	}
	return json.Marshal(headers)
}

// checkHeader allows what every broker's headers can carry: a name that is a token (RFC 9110, 5.6.2), a value on one line.
func checkHeader(name, value string) error {
	if strings.HasPrefix(strings.ToLower(name), "ce-") {
		return fmt.Errorf("header %q: names that begin with ce- belong to CloudEvents", name)
	}
	if name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	}) {
		return fmt.Errorf("header %q: a name consists of letters, digits and !#$%%&'*+-.^_`|~", name)
	}
	if !storable(value) || strings.ContainsAny(value, "\r\n") || strings.TrimSpace(value) != value {
		return fmt.Errorf("header %q: the value is not one line of valid UTF-8 without blanks around it", name)
	}
	return nil
}

// shardOf spreads keys by FNV-1a, 64 bits; an event without a key may stand anywhere.
func shardOf(key string, shards int) int32 {
	if key == "" {
		return rand.Int32N(int32(shards))
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	return int32(h.Sum64() % uint64(shards))
}
