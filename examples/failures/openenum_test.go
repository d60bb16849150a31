package failures_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/payload"
)

// channel looks like a generated open enum.
type channel string

func (c channel) Valid() bool { return c == "web" || c == "app" }
func (channel) OpenEnum()     {}

// passedOn is an event that says through which channel another event came.
type passedOn struct {
	events.StrayHappenedV1 `json:"-"` // makes it an event of the catalogue

	Channel channel `json:"channel"`
}

// TestAnUnknownValueOfAnOpenEnumIsPassedOn has a consumer of an older release put a value that it
// does not know into an event of its own. If the enqueue refused that value, the message would be
// delivered again for ever, and later events of its key would wait.
func TestAnUnknownValueOfAnOpenEnumIsPassedOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := inbox.New[pgx.Tx]("warehouse", w.store, map[string]inbox.Route[pgx.Tx]{
		"thing.happened@1": func(ctx context.Context, tx pgx.Tx, m *outbox.Message) error {
			var received passedOn
			if err := payload.Unmarshal(m.Payload, &received); err != nil {
				return err
			}
			_, err := w.store.Enqueue(ctx, tx, received)
			return err
		},
	})
	m := delivery()
	m.Payload = []byte(`{"channel":"kiosk","entity":"a","n":1}`)
	outcome, err := c.Handle(t.Context(), m)
	w.must(err)
	w.equal("outcome", outcome, inbox.OutcomeApplied)
	w.equal("what was enqueued", query[string](w, `SELECT convert_from(payload, 'UTF8')
		FROM outbox`), `{"channel":"kiosk"}`)
}
