package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// Topic is where TestPublisher publishes to. The harness makes the broker keep what arrives there.
const Topic = "things.happened"

// PublisherHarness is a publisher under test, on a broker of its own that is empty.
type PublisherHarness struct {
	Publisher outbox.Publisher
	// Receive waits for n messages on Topic that no earlier call has returned, and returns them as
	// a subscriber hands them to an inbox: those of one key in the broker's order.
	Receive func(ctx context.Context, n int) ([]outbox.Message, error)
	// Stop stops the broker, which keeps its messages, and Restart starts it again. If they are
	// nil, the tests that need them are left out.
	Stop, Restart func()
	// MaxBytes is the size above which the broker refuses a payload. If it is 0, that is not
	// tested.
	MaxBytes int
}

// TestPublisher checks that a publisher keeps what outbox.Publisher promises. Open is called for
// every test and may register clean-ups with t.
func TestPublisher(t *testing.T, open func(t *testing.T) PublisherHarness) {
	for name, test := range publisherTests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(&publishing{T: t, PublisherHarness: open(t)})
		})
	}
}

var publisherTests = map[string]func(*publishing){
	"every attribute arrives":                               testEveryAttribute,
	"concurrent publishes all arrive":                       testConcurrentPublishes,
	"the messages of a key arrive as they were published":   testPublishOrder,
	"an event is accepted twice":                            testPublishTwice,
	"nothing of a message is kept":                          testNothingIsKept,
	"the end of a context ends a publish":                   testPublishCancelled,
	"a broker that is down is unreachable until it is back": testBrokerDown,
	"what was acknowledged outlasts the broker's restart":   testAcknowledgedIsKept,
	"what is too large is refused for good":                 testTooLarge,
}

const (
	// hangTimeout ends a test that hangs. It is long, since everything may be slow on a busy
	// machine.
	hangTimeout = 3 * time.Minute

	secretKey     = "Schlüssel-geheim"
	secretPayload = "Nutzlast-geheim"
)

// publishing has one test's publisher, with helpers that fail the test.
type publishing struct {
	*testing.T
	PublisherHarness
}

// message returns a message with all fields that a relay sets.
func message(key string) *outbox.Message {
	return &outbox.Message{
		ID: uuid.New(), Type: "thing.happened", Version: 1, Source: "outboxgen/conformance",
		Topic: Topic, Key: key,
		Payload: []byte(`{"entity":"` + secretPayload + `"}`), ContentType: outbox.ContentType,
		CreatedAt: time.Now().UTC().Truncate(time.Microsecond),
	}
}

// try publishes m. It fails the test if an error is not as outbox.Publisher requires.
func (p *publishing) try(ctx context.Context, m *outbox.Message) error {
	err := p.Publisher.Publish(ctx, m)
	if err == nil {
		return nil
	}
	for _, secret := range []string{secretKey, secretPayload} {
		if strings.Contains(err.Error(), secret) {
			p.Errorf("the error's text contains the key or the payload: %.300s", err)
		}
	}
	if errors.Is(err, outbox.ErrUnreachable) && errors.Is(err, outbox.ErrPermanent) {
		p.Errorf("the error is both permanent and the broker's trouble: %v", err)
	}
	return err
}

func (p *publishing) publish(messages ...*outbox.Message) {
	p.Helper()
	for _, m := range messages {
		ctx, cancel := context.WithTimeout(p.Context(), hangTimeout)
		if err := p.try(ctx, m); err != nil {
			p.Fatalf("publish: %v", err)
		}
		cancel()
	}
}

// receive returns the next n messages.
func (p *publishing) receive(n int) []outbox.Message {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), hangTimeout)
	defer cancel()
	messages, err := p.Receive(ctx, n)
	if err != nil || len(messages) != n {
		p.Fatalf("received %d of %d messages: %v", len(messages), n, err)
	}
	return messages
}

// expect receives until each of the messages has arrived at least once.
func (p *publishing) expect(messages ...*outbox.Message) {
	p.Helper()
	missing := map[outbox.ID]bool{}
	for _, m := range messages {
		missing[m.ID] = true
	}
	for len(missing) > 0 {
		delete(missing, p.receive(1)[0].ID)
	}
}

func testEveryAttribute(p *publishing) {
	full := message("Zoë \"1\" 100% \\ 😀\n\t;=,")
	full.Type, full.Version = "größer.geworden", 12
	full.CausationID = uuid.New()
	full.CreatedAt = time.Date(2026, 11, 30, 12, 0, 0, 123_456_000, time.UTC)
	full.Headers = map[string]string{
		outbox.HeaderTraceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"tenant":                 "Käse & Co: a=b; 100%", "empty": "",
	}
	binary, empty := message("k"), message("")
	binary.ContentType = "application/octet-stream"
	binary.Payload = make([]byte, 512)
	for i := range binary.Payload {
		binary.Payload[i] = byte(i)
	}
	empty.Payload = nil
	sent := map[outbox.ID]*outbox.Message{full.ID: full, binary.ID: binary, empty.ID: empty}
	p.publish(full, binary, empty)
	for _, got := range p.receive(len(sent)) {
		want := sent[got.ID]
		if want == nil {
			p.Fatalf("received id %s, which was not sent, or twice", got.ID)
		}
		delete(sent, got.ID)
		for attribute, differs := range map[string]bool{
			"type":   got.Type != want.Type || got.Version != want.Version,
			"source": got.Source != want.Source,
			"topic":  got.Topic != want.Topic, "key": got.Key != want.Key,
			"payload":      !bytes.Equal(got.Payload, want.Payload),
			"content type": got.ContentType != want.ContentType,
			"causation":    got.CausationID != want.CausationID,
			"time":         !got.CreatedAt.Equal(want.CreatedAt),
			"headers":      !sameHeaders(got.Headers, want.Headers),
		} {
			if differs {
				p.Errorf("%s: got %s, want %s", attribute, attributes(&got), attributes(want))
			}
		}
	}
}

// attributes returns the attributes of a message as text, since its own Format omits most of them.
func attributes(m *outbox.Message) string {
	return fmt.Sprintf("{id %s, type %q, version %d, source %q, topic %q, key %q, payload %q, "+
		"content type %q, "+
		"causation %s, time %s, headers %q}", m.ID, m.Type, m.Version, m.Source, m.Topic, m.Key,
		m.Payload,
		m.ContentType, m.CausationID, m.CreatedAt.Format(time.RFC3339Nano), m.Headers)
}

// sameHeaders treats a nil map as an empty one.
func sameHeaders(a, b map[string]string) bool {
	return fmt.Sprint(a) == fmt.Sprint(b)
}

func testConcurrentPublishes(p *publishing) {
	const publishers, each = 16, 20
	var all []*outbox.Message
	for i := range publishers * each {
		all = append(all, message(fmt.Sprint("key ", i%publishers)))
	}
	var running sync.WaitGroup
	for i := range publishers {
		running.Go(func() {
			for _, m := range all[i*each : (i+1)*each] {
				if err := p.try(p.Context(), m); err != nil {
					p.Errorf("publish: %v", err)
				}
			}
		})
	}
	running.Wait()
	p.expect(all...)
}

func testPublishOrder(p *publishing) {
	const keys, each = 3, 30
	var want [keys][]outbox.ID
	for range each {
		for k := range keys {
			m := message(fmt.Sprint("key ", k))
			p.publish(m)
			want[k] = append(want[k], m.ID)
		}
	}
	got := map[string][]outbox.ID{}
	for _, m := range p.receive(keys * each) {
		got[m.Key] = append(got[m.Key], m.ID)
	}
	for k := range keys {
		if key := fmt.Sprint("key ", k); fmt.Sprint(got[key]) != fmt.Sprint(want[k]) {
			p.Errorf("%s: got %v, want %v", key, got[key], want[k])
		}
	}
}

// testPublishTwice publishes a message twice. The broker may drop the second one.
func testPublishTwice(p *publishing) {
	m, after := message("k"), message("k")
	p.publish(m, m, after)
	p.expect(m, after)
}

// testNothingIsKept overwrites what was published, once Publish has returned.
func testNothingIsKept(p *publishing) {
	m := message("k")
	m.Headers = map[string]string{"tenant": "north"}
	want := string(m.Payload)
	p.publish(m)
	clear(m.Payload)
	m.Headers["tenant"], m.Key = "south", "other"
	got := p.receive(1)[0]
	if string(got.Payload) != want || got.Headers["tenant"] != "north" || got.Key != "k" {
		p.Errorf("what arrived was changed after the publish: %s", attributes(&got))
	}
}

// testPublishCancelled accepts that a publisher finishes before its context ends.
func testPublishCancelled(p *publishing) {
	ended, cancel := context.WithCancel(p.Context())
	cancel()
	passed, cancel := context.WithDeadline(p.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for _, ctx := range []context.Context{ended, passed} {
		m, done := message(secretKey), make(chan error, 1)
		go func() { done <- p.try(ctx, m) }()
		var err error
		select {
		case err = <-done:
		case <-time.After(hangTimeout):
			p.Fatal("a publish has not returned though its context has ended")
		}
		switch {
		case err == nil:
			p.expect(m)
		case errors.Is(err, outbox.ErrPermanent), !errors.Is(err, ctx.Err()) &&
			!errors.Is(err, outbox.ErrUnreachable):
			p.Errorf("got %v, want an error that wraps %v or ErrUnreachable", err, ctx.Err())
		}
	}
}

func testBrokerDown(p *publishing) {
	if p.Stop == nil {
		p.Skip("the harness cannot stop the broker")
	}
	before, m := message("k"), message(secretKey)
	p.publish(before)
	p.Stop()
	for range 3 { // the first one may find the connection still up
		ctx, cancel := context.WithTimeout(p.Context(), hangTimeout)
		if err := p.try(ctx, m); !errors.Is(err, outbox.ErrUnreachable) {
			p.Errorf("got %v, want ErrUnreachable", err)
		}
		cancel()
	}
	p.Restart()
	p.untilPublished(m)
	p.expect(before, m)
}

// untilPublished publishes m again until the broker is available.
func (p *publishing) untilPublished(m *outbox.Message) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), hangTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for err := p.try(ctx, m); err != nil; err = p.try(ctx, m) {
		if !errors.Is(err, outbox.ErrUnreachable) {
			p.Fatalf("while the broker starts: got %v, want ErrUnreachable", err)
		}
		<-tick.C
	}
}

func testAcknowledgedIsKept(p *publishing) {
	if p.Stop == nil {
		p.Skip("the harness cannot stop the broker")
	}
	var mu sync.Mutex
	var acknowledged []*outbox.Message
	var running sync.WaitGroup
	many := make(chan struct{})
	for i := range 8 {
		running.Go(func() {
			for {
				m := message(fmt.Sprint("key ", i))
				if err := p.try(p.Context(), m); err != nil {
					if !errors.Is(err, outbox.ErrUnreachable) {
						p.Errorf("while the broker stops: got %v, want ErrUnreachable", err)
					}
					return
				}
				mu.Lock()
				if acknowledged = append(acknowledged, m); len(acknowledged) == 100 {
					close(many)
				}
				mu.Unlock()
			}
		})
	}
	select {
	case <-many:
	case <-time.After(hangTimeout):
		p.Error("not 100 publishes in time")
	}
	p.Stop()
	running.Wait()
	p.Restart()
	p.expect(acknowledged...)
}

func testTooLarge(p *publishing) {
	if p.MaxBytes == 0 {
		p.Skip("the harness knows no limit")
	}
	m, after := message(secretKey), message("k")
	m.Payload = []byte(strings.Repeat(secretPayload, p.MaxBytes/len(secretPayload)+1))
	if err := p.try(p.Context(), m); !errors.Is(err, outbox.ErrPermanent) {
		p.Errorf("got %v, want ErrPermanent", err)
	}
	p.publish(after)
	p.expect(after)
}
