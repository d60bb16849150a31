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

// Rows are events ready to be inserted, a slice per column, all of the same length.
type Rows struct {
	IDs          []ID
	Shards       []int32
	Types        []string
	Versions     []int32
	Topics       []string
	Keys         []string // "" for none
	Payloads     [][]byte
	ContentTypes []string
	Headers      [][]byte // a JSON object, or nil
	CausationIDs []ID     // the zero ID for none
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
func Encode(ctx context.Context, shards int, events []Event, opts ...EnqueueOption) (Rows, error) {
	o := enqueueOptions{}
	if traceparent := Traceparent(ctx); traceparent != "" {
		WithHeader(HeaderTraceparent, traceparent)(&o)
	}
	for _, opt := range opts {
		opt(&o)
	}
	if o.id != uuid.Nil && len(events) != 1 {
		return Rows{}, fmt.Errorf("outbox: enqueue: WithID fits one event, not %d", len(events))
	}
	headers, err := encodeHeaders(o.headers)
	if err != nil {
		return Rows{}, fmt.Errorf("outbox: enqueue: %w", err)
	}
	rows := newRows(len(events))
	for _, e := range events {
		if err := rows.add(e, shards, headers, o); err != nil {
			return Rows{}, fmt.Errorf("outbox: enqueue %s: %w", e.EventType(), err)
		}
	}
	return rows, nil
}

func newRows(n int) Rows {
	return Rows{
		IDs: make([]ID, 0, n), Shards: make([]int32, 0, n),
		Types: make([]string, 0, n), Versions: make([]int32, 0, n),
		Topics: make([]string, 0, n), Keys: make([]string, 0, n),
		Payloads: make([][]byte, 0, n), ContentTypes: make([]string, 0, n),
		Headers: make([][]byte, 0, n), CausationIDs: make([]ID, 0, n),
	}
}

func (r *Rows) add(e Event, shards int, headers []byte, o enqueueOptions) error {
	t, key := e.EventType(), e.EventKey()
	if err := checkKey(t, key); err != nil {
		return err
	}
	body, err := payload.Marshal(e)
	if err != nil {
		return err
	}
	id := o.id
	if id == uuid.Nil {
		if id, err = uuid.NewV7(); err != nil {
			return err
		}
	}
	r.IDs = append(r.IDs, id)
	r.Shards = append(r.Shards, shardOf(key, shards))
	r.Types = append(r.Types, t.Name)
	r.Versions = append(r.Versions, int32(t.Version))
	r.Topics = append(r.Topics, t.Topic)
	r.Keys = append(r.Keys, key)
	r.Payloads = append(r.Payloads, body)
	r.ContentTypes = append(r.ContentTypes, ContentType)
	r.Headers = append(r.Headers, headers)
	r.CausationIDs = append(r.CausationIDs, o.causation)
	return nil
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
