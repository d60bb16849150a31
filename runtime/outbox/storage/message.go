package storage

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// ID identifies an event wherever it goes. It is assigned once, at enqueue, and never again:
// publishing twice carries the same ID. Versions of one fact that are enqueued together share it.
type ID = uuid.UUID

// Message is the envelope of an event: what a publisher sends, and a subscriber receives.
type Message struct {
	ID          ID
	Type        string // such as order.placed
	Version     int32
	Source      string // the catalogue's service: the CloudEvents source
	Topic       string
	Key         string // "" without a key
	Payload     []byte
	ContentType string
	Headers     map[string]string // traceparent among them, if there is one
	CausationID ID                // the event whose handler enqueued this one, or the zero ID
	CreatedAt   time.Time         // when its transaction began, by the database's clock
}

// TypeName returns the message's type and version as the catalogue writes them: order.placed@1.
func (m *Message) TypeName() string { return TypeName(m.Type, int(m.Version)) }

// LogValue says which event it is, and nothing of its payload, key or headers, which may hold
// personal data.
func (m Message) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", m.ID.String()), slog.String("type", m.TypeName()))
}

// Format writes the same as LogValue, for every verb.
func (m Message) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "%s %s", m.TypeName(), m.ID) }

// TypeName joins an event's name and version: order.placed@1.
func TypeName(name string, version int) string { return name + "@" + strconv.Itoa(version) }

// ParseTypeName splits a name such as order.placed@1 into name and version.
func ParseTypeName(s string) (name string, version int, err error) {
	name, digits, found := strings.Cut(s, "@")
	version, err = strconv.Atoi(digits)
	if !found || name == "" || err != nil || version < 1 || digits[0] == '0' || digits[0] == '+' {
		return "", 0, fmt.Errorf("outbox: %q is not an event type of the form name@version", s)
	}
	return name, version, nil
}

// Position is the place of an event in the outbox. Seq is assigned by the database, ascending, and
// unique in the whole outbox.
type Position struct {
	Shard int32
	Seq   int64
	// Event is the id of the event at this position. After a restored backup it may be another
	// event's position; settling changes nothing then. If Event is zero, any event is settled.
	Event ID
}

// Item is a row of the outbox: a message, and the state of its publishing.
type Item struct {
	Message
	Position
	// Attempts is the number of attempts that were charged to the event so far.
	Attempts int32
	// Interrupted says that the last attempt was charged in advance and its result is unknown: the
	// event may have ended the relay's process.
	Interrupted bool
	// NotDue says that the time of the next attempt is in the future.
	NotDue bool
	// Unreadable is the reason why the row could not be read as an event, or nil. The relay makes
	// such a row a dead letter.
	Unreadable error
}

// Fault returns the reason why the row is not a valid event, or nil. Such a row was not written by
// generated code.
func (i *Item) Fault() error {
	switch {
	case i.Unreadable != nil:
		return fmt.Errorf("the row is not an event: %w", i.Unreadable)
	case i.Version < 1:
		return fmt.Errorf("the row is not an event: its version is %d", i.Version)
	case i.Type == "" || strings.Contains(i.Type, "@") || !Storable(i.Type):
		return errors.New("the row is not an event: its type is not a name")
	case i.Topic == "":
		return errors.New("the row is not an event: it has no topic")
	}
	return nil
}

// LogValue returns the same as Message.LogValue.
func (i Item) LogValue() slog.Value { return i.Message.LogValue() }

// Format writes the same as Message.Format.
func (i Item) Format(f fmt.State, verb rune) { i.Message.Format(f, verb) }

// Storable reports whether s can be stored in a text column of every supported database.
func Storable(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }
