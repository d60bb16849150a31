package failures_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// TestTimesAreRightInZonesWithDaylightSaving has a lease and a retry delay of some months, which
// include a change to or from daylight saving time, and must last as long all the same.
func TestTimesAreRightInZonesWithDaylightSaving(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"Europe/Berlin", "America/St_Johns", "Pacific/Chatham"} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.setting("timezone", zone)
			w.enqueue(thing("a", 1))
			relay := w.join(w.store, time.Hour)
			owned := w.takeAll(w.store, relay)
			at := storage.Position{
				Shard: query[int32](w, `SELECT shard FROM outbox`),
				Seq:   query[int64](w, `SELECT seq FROM outbox`),
			}
			for _, days := range []int{0, 60, 120, 180} { // one of these spans exactly one change
				d := time.Duration(days)*24*time.Hour + time.Hour
				w.join(w.store, d)
				w.lasts("the lease", `SELECT max(expires_at) FROM outbox_relay`, d)
				w.equal("retried", w.settle(storage.SettleParams{
					Relay: relay, Owned: owned,
					Retries: []storage.Retry{{Position: at, Attempts: 1, Delay: d}},
				}), 1)
				w.lasts("the retry", `SELECT available_at FROM outbox`, d)
			}
			r, err := w.store.Read(t.Context(), everyShard(1, 1<<20))
			w.must(err)
			if age := time.Since(r.Items[0].CreatedAt); age < -tolerance || age > tolerance {
				t.Errorf("an event of just now is %v old", age)
			}
			w.equal("it waits", r.Items[0].NotDue, true)
		})
	}
}

// tolerance allows for a busy machine. A change to daylight saving time would make a difference of
// an hour.
const tolerance = 30 * time.Minute

// lasts checks how far a point in time lies in the future, by the database's clock.
func (w *world) lasts(what, instant string, want time.Duration) {
	w.Helper()
	seconds := query[float64](w,
		`SELECT extract(epoch FROM (`+instant+`) - clock_timestamp())::float8`)
	got := time.Duration(seconds * float64(time.Second))
	if got > want || got < want-tolerance {
		w.Errorf("%s of %v ends in %v", what, want, got)
	}
}

// arguments collects the arguments of all statements that are sent to the database.
type arguments struct {
	mu         sync.Mutex
	statements int
	instants   []string
}

func (a *arguments) TraceQueryStart(
	ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData,
) context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.statements++
	for _, arg := range data.Args {
		if t := reflect.TypeOf(arg); t != nil && holdsInstant(t) {
			a.instants = append(a.instants, fmt.Sprintf("%v in %s", t, data.SQL))
		}
	}
	return ctx
}

func (a *arguments) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func holdsInstant(t reflect.Type) bool {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return true
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Pointer:
		return holdsInstant(t.Elem())
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			if holdsInstant(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

// TestTheApplicationsClockDecidesNothing shows that no statement has a point in time as an
// argument, so that a wrong clock of the application makes no difference.
func TestTheApplicationsClockDecidesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var sent arguments
	w.pool = connect(t, w.url, func(c *pgxpool.Config) { c.ConnConfig.Tracer = &sent })
	w.store = events.NewStore(w.pool)
	w.wholePath()
	if sent.statements < 20 || len(sent.instants) > 0 {
		t.Errorf("of %d statements these carry an instant: %q", sent.statements, sent.instants)
	}
	if !holdsInstant(reflect.TypeFor[[]time.Time]()) {
		t.Error("an instant would not be found")
	}
}

// TestACustomersTextMayContainAnything publishes and handles texts that a jsonb or text column
// would refuse.
func TestACustomersTextMayContainAnything(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	recording := &outboxtest.RecordingPublisher{}
	texts := []string{
		"a\x00b", "\u0000", `\u0000`, "\U0001F4A9", "<&>\u2028", "'; DROP TABLE outbox; --",
	}
	for i, text := range texts {
		w.enqueue(events.StrayHappenedV1{Entity: text, N: int64(i)})
	}
	w.equal("events an operator can see", query[int](w,
		`SELECT count(*) FROM outbox_status WHERE payload LIKE '{"entity":%'`), len(texts))
	w.run(w.store, recording, quick())
	seen := map[string]bool{}
	for _, m := range w.published(recording, len(texts)) {
		seen[w.decode(&m)] = true
	}
	for _, text := range texts {
		if !seen[text] {
			t.Errorf("%q did not arrive", text)
		}
	}
}

// decode returns the text in an event's payload, as a consumer decodes it.
func (w *world) decode(m *outbox.Message) (text string) {
	w.Helper()
	c := inbox.New[pgx.Tx]("reader", w.store, map[string]inbox.Route[pgx.Tx]{
		"stray.happened@1": inbox.RouteTo(func(_ context.Context, _ pgx.Tx, _ *outbox.Message,
			e events.StrayHappenedV1) error {
			text = e.Entity
			return nil
		}),
	})
	_, err := c.Handle(w.Context(), m)
	w.must(err)
	return text
}

// TestARefusalOfAnyTextIsRecorded has the broker return errors whose text a text column would
// refuse. The failure must be recorded all the same.
func TestARefusalOfAnyTextIsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enqueue(thing("a", 1))
	relay, _ := w.run(w.store, publisherFunc(func(context.Context, *outbox.Message) error {
		return outbox.Permanent(errors.New("refused: \x00\xff" + string(make([]byte, 5000))))
	}), quick())
	w.eventually("it is a dead letter", func() bool { return relay.Stats().Dead == 1 })
	letters := w.deadLetters(10)
	w.equal("dead letters", len(letters), 1)
}
