package outbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
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

// TestEncodeRefuses holds that what a database or a broker would refuse is refused before, and that
// no error quotes a value.
func TestEncodeRefuses(t *testing.T) {
	const secret = "secret"
	for name, test := range map[string]struct {
		event note
		opts  []EnqueueOption
		want  string
	}{
		"an empty key": {note{}, nil,
			"outbox: enqueue note.taken@2: the key field is empty"},
		"a NUL in the key": {note{Key: secret + "\x00"}, nil,
			"outbox: enqueue note.taken@2: the key is not valid UTF-8, or contains a NUL"},
		"a broken key": {note{Key: secret + "\xff"}, nil,
			"outbox: enqueue note.taken@2: the key is not valid UTF-8, or contains a NUL"},
		"a long key": {note{Key: strings.Repeat(secret, 200)}, nil,
			"outbox: enqueue note.taken@2: the key has 1200 bytes, at most 1024 are allowed"},
		"broken text": {note{Key: "k", Text: secret + "\xff"}, nil,
			"outbox: enqueue note.taken@2: payload: text: not a string in UTF-8"},
		"a header of two lines": {note{Key: "k"},
			[]EnqueueOption{WithHeader("h", secret+"\r\nx: y")},
			`outbox: enqueue: header "h": the value is not one line of valid UTF-8 without blanks around it`},
		"a header that is trimmed": {note{Key: "k"}, []EnqueueOption{WithHeader("h", " "+secret)},
			`outbox: enqueue: header "h": the value is not one line of valid UTF-8 without blanks around it`},
		"a header of CloudEvents": {note{Key: "k"}, []EnqueueOption{WithHeader("CE-id", secret)},
			`outbox: enqueue: header "CE-id": names that begin with ce- belong to CloudEvents`},
		"a header with a blank": {note{Key: "k"}, []EnqueueOption{WithHeader("a b", secret)},
			`outbox: enqueue: header "a b": a name consists of letters, digits and !#$%&'*+-.^_` +
				"`|~"},
		"large headers": {note{Key: "k"},
			[]EnqueueOption{WithHeader("h", strings.Repeat("x", MaxHeaderBytes))},
			"outbox: enqueue: headers have 8193 bytes, at most 8192 are allowed"},
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

const validTraceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestEncodeCarriesTheTrace(t *testing.T) {
	ctx := ContextWithTraceparent(context.Background(), validTraceparent)
	rows, err := Encode(ctx, 4, []Event{note{Key: "a"}}, WithHeader("tenant", "t"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(rows[0].Headers), `{"tenant":"t","traceparent":"`+validTraceparent+
		`"}`; got != want {
		t.Fatalf("got headers %s, want %s", got, want)
	}
}

// TestAnInvalidTraceIsIgnored: what a client sends as its trace costs no business transaction.
func TestAnInvalidTraceIsIgnored(t *testing.T) {
	later := "cc" + validTraceparent[2:]
	for traceparent, valid := range map[string]bool{
		validTraceparent: true, later: true, later + "-what-comes": true, later + "-": true,
		"": false, "00-1": false, "rubbish": false,
		" " + validTraceparent:                                    false,
		validTraceparent + " ":                                    false,
		validTraceparent + "-what-comes":                          false,
		later + "x":                                               false,
		later + "-a\nb":                                           false,
		later + "-\xff":                                           false,
		later + "-é":                                              false,
		"ff" + validTraceparent[2:]:                               false,
		strings.ToUpper(validTraceparent):                         false,
		"00-\xff" + validTraceparent[4:]:                          false,
		"a\r\nb" + validTraceparent[4:]:                           false,
		strings.Repeat("a", 9000):                                 false,
		later + "-" + strings.Repeat("a", 9e3):                    false,
		"00_" + validTraceparent[3:]:                              false,
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": false,
	} {
		want := "null"
		if valid {
			want = `{"traceparent":"` + traceparent + `"}`
		}
		for how, encode := range map[string]func() ([]Row, error){
			"context": func() ([]Row, error) {
				return Encode(ContextWithTraceparent(t.Context(), traceparent),
					4, []Event{note{Key: "a"}})
			},
			"header": func() ([]Row, error) {
				return Encode(t.Context(), 4, []Event{note{Key: "a"}},
					WithHeader("Traceparent", traceparent))
			},
		} {
			rows, err := encode()
			if err != nil {
				t.Errorf("%s %.70q: %v", how, traceparent, err)
			} else if got := cmp.Or(string(rows[0].Headers), "null"); got != want {
				t.Errorf("%s %.70q: got headers %s, want %s", how, traceparent, got, want)
			}
		}
	}
}

// TestHeadersOfATraceTakeTheRoomThatIsLeft: the caller's own headers come first, and baggage of any
// size costs no event.
func TestHeadersOfATraceTakeTheRoomThatIsLeft(t *testing.T) {
	ctx := ContextWithTraceparent(t.Context(), validTraceparent)
	header := func(name string, size int) EnqueueOption {
		return WithHeader(name, strings.Repeat("x", size))
	}
	for name, c := range map[string]struct {
		opts []EnqueueOption
		want string
	}{
		"all fit": {[]EnqueueOption{header("a", 9), header("tracestate", 9), header("baggage", 9)},
			"a baggage traceparent tracestate"},
		"large baggage": {[]EnqueueOption{
			header("a", 9), header("tracestate", 9), header("Baggage", 9000),
		}, "a traceparent tracestate"},
		"no room for a trace": {
			[]EnqueueOption{header("a", MaxHeaderBytes-20), header("tracestate", 1)}, "a",
		},
		"invalid baggage": {[]EnqueueOption{WithHeader("baggage", "a\xff")}, "traceparent"},
		"an invalid one replaces none": {
			[]EnqueueOption{WithHeader("traceparent", "rubbish")}, "traceparent",
		},
	} {
		rows, err := Encode(ctx, 4, []Event{note{Key: "a"}}, c.opts...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var headers map[string]string
		if err := json.Unmarshal(rows[0].Headers, &headers); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(slices.Sorted(maps.Keys(headers)), " "); got != c.want {
			t.Errorf("%s: got headers %s, want %s", name, got, c.want)
		}
	}
}

// TestAcceptedHeadersCanBePassedOn holds that a handler may enqueue what AcceptHeaders left of a
// stranger's headers.
func TestAcceptedHeadersCanBePassedOn(t *testing.T) {
	given := map[string]string{
		"tenant": "größe", "": "no name", "a b": "blank", "ce-x": "reserved", "Ce-y": "reserved",
		"broken": "a\xff", "lines": "a\r\nb",
		"nul": "a\x00b", "trimmed": " a", "TraceParent": validTraceparent, "Tracestate": "a=b",
		"huge":   strings.Repeat("x", 10_000),
		"large1": strings.Repeat("x", 5000), "large2": strings.Repeat("x", 5000),
	}
	accepted := AcceptHeaders(given)
	want := "large1 tenant traceparent tracestate"
	if got := strings.Join(slices.Sorted(maps.Keys(accepted)), " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var opts []EnqueueOption
	for name, value := range accepted {
		opts = append(opts, WithHeader(name, value))
	}
	if _, err := Encode(t.Context(), 4, []Event{note{Key: "a"}}, opts...); err != nil {
		t.Error(err)
	}
	if got := AcceptHeaders(map[string]string{"traceparent": "rubbish", "tracestate": "a=b"}); len(
		got,
	) != 0 {
		t.Errorf("got %v of an invalid trace, want nothing", got)
	}
}

// noteV3 is the next version of note.
type noteV3 note

func (n noteV3) EventKey() string { return n.Key }

func (n noteV3) EventType() EventType {
	return EventType{Name: "note.taken", Version: 3, Topic: "notes", Ordering: OrderingKey}
}

type other struct{ note }

func (other) EventType() EventType {
	return EventType{Name: "note.lost", Version: 4, Topic: "notes", Ordering: OrderingKey}
}

func TestVersionsOfOneFactShareAnID(t *testing.T) {
	versions := []Event{noteV3{Key: "a"}, note{Key: "a"}}
	rows, err := EncodeVersions(t.Context(), 4, versions, WithHeader("tenant", "t"))
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].ID != rows[1].ID || rows[0].ID == uuid.Nil || rows[0].Shard != rows[1].Shard ||
		rows[0].Version != 3 || rows[1].Version != 2 {
		t.Errorf("got %+v, want one id and shard, and the order that was given", rows)
	}
	id := uuid.New()
	if rows, err = EncodeVersions(t.Context(), 4, versions, WithID(id)); err != nil ||
		rows[0].ID != id || rows[1].ID != id {
		t.Errorf("got %+v and error %v, want the id %s in both", rows, err, id)
	}
	for name, c := range map[string]struct {
		versions []Event
		want     string
	}{
		"none": {nil, "outbox: enqueue: no version of the event is given"},
		"one version twice": {[]Event{note{Key: "a"}, note{Key: "a"}},
			"outbox: enqueue note.taken@2: the version is given twice"},
		"different events": {[]Event{note{Key: "a"}, other{note{Key: "a"}}}, "outbox: enqueue " +
			"note.lost@4: another event than note.taken@2: they are no versions of one fact"},
		"different keys": {[]Event{note{Key: "a"}, noteV3{Key: "secret"}},
			"outbox: enqueue note.taken@3: another key than that of note.taken@2: they are no " +
				"versions of one fact"},
		"an invalid version": {[]Event{note{Key: "a"}, noteV3{Key: "a", Text: "secret\xff"}},
			"outbox: enqueue note.taken@3: payload: text: not a string in UTF-8"},
	} {
		_, err := EncodeVersions(t.Context(), 4, c.versions)
		var invalid *EventError
		if err == nil || err.Error() != c.want || !errors.As(err, &invalid) {
			t.Errorf("%s: got error %v, want %s", name, err, c.want)
		}
	}
}

// TestShardOfKeyNeverChanges holds the hash: another would put a key's new events into another
// shard than its old ones.
func TestShardOfKeyNeverChanges(t *testing.T) {
	for key, want := range map[string]int32{"a": 12, "order-1": 45, "Zoë": 60} {
		if got := shardOf(key, 64); got != want {
			t.Errorf("shard of %q: got %d, want %d", key, got, want)
		}
	}
}
