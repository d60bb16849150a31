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

// ParseTypeName splits what TypeName joined.
func ParseTypeName(s string) (name string, version int, err error) {
	name, digits, found := strings.Cut(s, "@")
	version, err = strconv.Atoi(digits)
	if !found || name == "" || err != nil || version < 1 || digits[0] == '0' || digits[0] == '+' {
		return "", 0, fmt.Errorf("outbox: %q is not an event type of the form name@version", s)
	}
	return name, version, nil
}

// Position is where an event stands in the outbox. Seq is assigned by the database, ascends, and is
// unique in the whole outbox.
type Position struct {
	Shard int32
	Seq   int64
	// Event is the id of the event that stands there. After the database has gone back in time,
	// another event may: what is settled is this event, or whichever stands there if Event is zero.
	Event ID
}

// Item is a row of the outbox: a message, and what the relay has to know to work on it.
type Item struct {
	Message
	Position
	// Attempts is how many publishes have begun and were charged to the event so far.
	Attempts int32
	// Interrupted says that the last of them was charged beforehand and has not ended: it may have
	// ended the relay's process.
	Interrupted bool
	// NotDue says that the next attempt lies in the future.
	NotDue bool
	// Unreadable says why the row is no event, if somebody else has written it. The relay makes it
	// a dead letter.
	Unreadable error
}

// Fault returns why the row is no event, or nil. If it is none, another program or a hand has
// written it.
func (i *Item) Fault() error {
	switch {
	case i.Unreadable != nil:
		return fmt.Errorf("the row is no event: %w", i.Unreadable)
	case i.Version < 1:
		return fmt.Errorf("the row is no event: its version is %d", i.Version)
	case i.Type == "" || strings.Contains(i.Type, "@") || !Storable(i.Type):
		return errors.New("the row is no event: its type is not a name")
	case i.Topic == "":
		return errors.New("the row is no event: it has no topic")
	}
	return nil
}

// LogValue is that of the message.
func (i Item) LogValue() slog.Value { return i.Message.LogValue() }

// Format is that of the message.
func (i Item) Format(f fmt.State, verb rune) { i.Message.Format(f, verb) }

// Storable reports whether a text column of every supported database takes s.
func Storable(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }
