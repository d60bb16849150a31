package outbox

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"
)

type note struct {
	Key  string `json:"key"`
	Text string `json:"text"`
}

func (n note) EventType() EventType {
	return EventType{Name: "note.taken", Version: 2, Topic: "notes", Ordering: OrderingKey}
}
func (n note) EventKey() string { return n.Key }

// TestEncodeRefuses holds that what a database or a broker would refuse is refused before, and that no error quotes a value.
func TestEncodeRefuses(t *testing.T) {
	const secret = "secret"
	for name, test := range map[string]struct {
		event note
		opts  []EnqueueOption
		want  string
	}{
		"an empty key":             {note{}, nil, "outbox: enqueue note.taken@2: the key field is empty"},
		"a NUL in the key":         {note{Key: secret + "\x00"}, nil, "outbox: enqueue note.taken@2: the key is not valid UTF-8, or contains a NUL"},
		"a broken key":             {note{Key: secret + "\xff"}, nil, "outbox: enqueue note.taken@2: the key is not valid UTF-8, or contains a NUL"},
		"a long key":               {note{Key: strings.Repeat(secret, 200)}, nil, "outbox: enqueue note.taken@2: the key has 1200 bytes, at most 1024 are allowed"},
		"broken text":              {note{Key: "k", Text: secret + "\xff"}, nil, "outbox: enqueue note.taken@2: payload: text: not a string in UTF-8"},
		"a header of two lines":    {note{Key: "k"}, []EnqueueOption{WithHeader("h", secret+"\r\nx: y")}, `outbox: enqueue: header "h": the value is not one line of valid UTF-8 without blanks around it`},
		"a header that is trimmed": {note{Key: "k"}, []EnqueueOption{WithHeader("h", " "+secret)}, `outbox: enqueue: header "h": the value is not one line of valid UTF-8 without blanks around it`},
		"a header of CloudEvents":  {note{Key: "k"}, []EnqueueOption{WithHeader("CE-id", secret)}, `outbox: enqueue: header "CE-id": names that begin with ce- belong to CloudEvents`},
		"a header with a blank":    {note{Key: "k"}, []EnqueueOption{WithHeader("a b", secret)}, `outbox: enqueue: header "a b": a name consists of letters, digits and !#$%&'*+-.^_` + "`|~"},
		"large headers":            {note{Key: "k"}, []EnqueueOption{WithHeader("h", strings.Repeat("x", MaxHeaderBytes))}, "outbox: enqueue: headers have 8193 bytes, at most 8192 are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Encode(t.Context(), 4, []Event{test.event}, test.opts...)
			if err == nil || err.Error() != test.want {
				t.Fatalf("got error %v, want %s", err, test.want)
			}
		})
	}
}

func TestEncodeOneIDForOneEvent(t *testing.T) {
	events := []Event{note{Key: "a"}, note{Key: "b"}}
	if _, err := Encode(t.Context(), 4, events, WithID(uuid.New())); err == nil {
		t.Fatal("one id was accepted for two events")
	}
	rows, err := Encode(t.Context(), 4, events)
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].ID == rows[1].ID || rows[0].ID == uuid.Nil {
		t.Fatalf("got ids %v, want two", IDs(rows))
	}
}

func TestEncodeCarriesTheTrace(t *testing.T) {
	ctx := ContextWithTraceparent(context.Background(), "00-1-2-01")
	rows, err := Encode(ctx, 4, []Event{note{Key: "a"}}, WithHeader("tenant", "t"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(rows[0].Headers), `{"tenant":"t","traceparent":"00-1-2-01"}`; got != want {
		t.Fatalf("got headers %s, want %s", got, want)
	}
}

// TestShardOfKeyNeverChanges holds the hash: another would put a key's new events into another shard than its old ones.
func TestShardOfKeyNeverChanges(t *testing.T) {
	for key, want := range map[string]int32{"a": 12, "order-1": 45, "Zoë": 60} {
		if got := shardOf(key, 64); got != want {
			t.Errorf("shard of %q: got %d, want %d", key, got, want)
		}
	}
}

func TestParseTypeName(t *testing.T) {
	for _, bad := range []string{"", "@1", "a", "a@", "a@0", "a@01", "a@+1", "a@-1", "a@1@2", "a@x"} {
		if name, version, err := ParseTypeName(bad); err == nil {
			t.Errorf("%q was read as %s and %d", bad, name, version)
		}
	}
	name, version, err := ParseTypeName("order.placed@12")
	if err != nil || name != "order.placed" || version != 12 {
		t.Fatalf("got %s, %d, %v", name, version, err)
	}
}
