package outbox

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Position is where an event stands in the outbox. Seq is assigned by the database and unique in the whole outbox.
type Position struct {
	Shard int32
	Seq   int64
	// Event is the id of the event that stands there. After the database has gone back in time
	// another one may: what is settled is that event, or whichever stands there if Event is zero.
	Event ID
}

// Message is an event on its way: what a Store reads, a Publisher sends and a subscriber hands on.
type Message struct {
	ID          ID
	Type        string // such as order.placed
	Version     int32
	Source      string // the catalogue's service: the CloudEvents source
	Topic       string
	Key         string // "" without a key
	Payload     []byte
	ContentType string
	Headers     map[string]string // traceparent among them, where there is one
	CausationID ID                // the event whose handler enqueued this one; the zero ID where there is none
	CreatedAt   time.Time         // when its transaction began, by the database's clock

	// What follows is the relay's business, and zero in a message that arrived from a broker.

	Position
	Attempts int32 // publishes begun and charged to the event so far
	Begun    bool  // the last of them was charged beforehand and has not ended: it may have ended its relay
	Waiting  bool  // its next attempt is not due yet
	// Unreadable says why the row is no event, if somebody else wrote it: the relay makes it a dead
	// letter.
	Unreadable error
}

// fault returns why a row is no event, or nil. Somebody else has written it then: another program,
// or a hand.
func (m *Message) fault() error {
	switch {
	case m.Unreadable != nil:
		return fmt.Errorf("the row is no event: %w", m.Unreadable)
	case m.Version < 1:
		return fmt.Errorf("the row is no event: its version is %d", m.Version)
	case m.Type == "" || strings.Contains(m.Type, "@") || !storable(m.Type):
		return errors.New("the row is no event: its type is not a name")
	case m.Topic == "":
		return errors.New("the row is no event: it has no topic")
	}
	return nil
}

// TypeName returns the message's type and version as the catalogue writes them: order.placed@1.
func (m *Message) TypeName() string { return TypeName(m.Type, int(m.Version)) }

// LogValue says which event it is, and nothing of its payload, key or headers: they may hold personal data.
func (m Message) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", m.ID.String()), slog.String("type", m.TypeName()))
}

// Format writes the same for every verb.
func (m Message) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "%s %s", m.TypeName(), m.ID) }
