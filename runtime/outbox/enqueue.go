package outbox

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/payload"
)

// MaxKeyBytes is how long an ordering key may be.
const MaxKeyBytes = 1024

// ContentType is the content type of every payload that Encode makes.
const ContentType = "application/json"

// CopyThreshold is the number of rows from which generated code uses COPY instead of one INSERT for
// each row.
const CopyThreshold = 16

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

// WithID sets the event's id, so that a producer that runs twice produces the same event. It can be
// used for one event only, or for all versions of one fact.
func WithID(id ID) EnqueueOption { return func(o *enqueueOptions) { o.id = id } }

// WithCausation records the event whose handling caused this one.
func WithCausation(id ID) EnqueueOption { return func(o *enqueueOptions) { o.causation = id } }

// WithHeader adds a header to the message. Names are case-sensitive; those that begin with ce- are
// refused. The headers of a trace (traceparent, tracestate and baggage, in any case) come from
// outside: one that is invalid, or has no room beside the others, is left out.
func WithHeader(name, value string) EnqueueOption {
	name = canonicalName(name)
	return func(o *enqueueOptions) {
		if slices.Contains(propagated, name) && checkHeader(name, value) != nil {
			return
		}
		if o.headers == nil {
			o.headers = map[string]string{}
		}
		o.headers[name] = value
	}
}

// EventError says that an event cannot be enqueued as it is. Nothing was sent to the database, so
// the caller's transaction remains usable. Every other error of an enqueue function comes from the
// database, and the transaction has to be rolled back. Its text names event types, fields and
// headers, never a value.
type EventError struct {
	Type string // such as order.placed@1; "" for what does not concern one event
	Err  error
}

func (e *EventError) Error() string {
	return strings.TrimSuffix("outbox: enqueue "+e.Type, " ") + ": " + e.Err.Error()
}

// Unwrap returns what is wrong: a *payload.Error, for instance.
func (e *EventError) Unwrap() error { return e.Err }

// Encode checks events and turns them into rows for an outbox of the given number of shards. Every
// error is an *EventError.
func Encode[E Event](
	ctx context.Context, shards int, events []E, opts ...EnqueueOption,
) ([]Row, error) {
	o := optionsOf(ctx, opts)
	if o.id != uuid.Nil && len(events) != 1 {
		return nil, &EventError{Err: fmt.Errorf("WithID fits one event, not %d", len(events))}
	}
	return encode(events, shards, o)
}

// EncodeVersions is Encode for versions of one fact: events of one name and key, each in a
// different version. Their rows share an id, so that a consumer that can handle several of them
// applies only one.
func EncodeVersions[E Event](
	ctx context.Context, shards int, versions []E, opts ...EnqueueOption,
) ([]Row, error) {
	if err := checkVersions(versions); err != nil {
		return nil, err
	}
	o := optionsOf(ctx, opts)
	if o.id == uuid.Nil {
		var err error
		if o.id, err = uuid.NewV7(); err != nil {
			return nil, &EventError{Err: err}
		}
	}
	return encode(versions, shards, o)
}

func checkVersions[E Event](versions []E) error {
	if len(versions) == 0 {
		return &EventError{Err: errors.New("no version of the event is given")}
	}
	first, key := versions[0].EventType(), versions[0].EventKey()
	for i, e := range versions[1:] {
		t := e.EventType()
		var problem string
		switch {
		case t.Name != first.Name:
			problem = "another event than " + first.String() + ": they are no versions of one fact"
		case slices.ContainsFunc(versions[:i+1],
			func(e E) bool { return e.EventType().Version == t.Version }):
			problem = "the version is given twice"
		case e.EventKey() != key:
			problem = "another key than that of " + first.String() +
				": they are no versions of one fact"
		}
		if problem != "" {
			return &EventError{Type: t.String(), Err: errors.New(problem)}
		}
	}
	return nil
}

func optionsOf(ctx context.Context, opts []EnqueueOption) (o enqueueOptions) {
	if traceparent := Traceparent(ctx); traceparent != "" {
		WithHeader(HeaderTraceparent, traceparent)(&o)
	}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

func encode[E Event](events []E, shards int, o enqueueOptions) ([]Row, error) {
	headers, err := encodeHeaders(o.headers)
	if err != nil {
		return nil, &EventError{Err: err}
	}
	rows := make([]Row, len(events))
	for i, e := range events {
		if err := rows[i].encode(e, shards, o.id); err != nil {
			return nil, &EventError{Type: e.EventType().String(), Err: err}
		}
		rows[i].Headers = headers
		rows[i].CausationID = o.causation
	}
	return rows, nil
}

// encode sets r to the row of an event. If id is the zero ID, it generates one.
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
		Shard: shardOf(key, shards), ID: id, Type: t.Name, Version: int32(t.Version),
		Topic: t.Topic, Key: key,
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

// checkKey returns an error for a key that the database would refuse: an error of the database
// would abort the caller's transaction.
func checkKey(t EventType, key string) error {
	switch {
	case t.Ordering == OrderingNone:
		return nil
	case key == "":
		return fmt.Errorf("the key field is empty")
	case len(key) > MaxKeyBytes:
		return fmt.Errorf("the key has %d bytes, at most %d are allowed", len(key), MaxKeyBytes)
	case !storage.Storable(key):
		return fmt.Errorf("the key is not valid UTF-8, or contains a NUL")
	}
	return nil
}

// shardOf returns the shard of a key, by its FNV-1a hash of 64 bits. An event without a key gets a
// random shard.
func shardOf(key string, shards int) int32 {
	if key == "" {
		return rand.Int32N(int32(shards))
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	return int32(h.Sum64() % uint64(shards))
}
