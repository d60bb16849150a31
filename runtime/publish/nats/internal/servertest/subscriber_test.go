package servertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/payload"
	outboxnats "github.com/outboxgen/outboxgen/runtime/publish/nats"
)

func TestWhatIsHandledIsAcknowledged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.consumer(t, jetstream.ConsumerConfig{})
	for i := range 200 {
		w.publish(t, event(fmt.Sprint("k", i%7), `{}`), event("", `{}`))
	}
	var handled atomic.Int64
	r := subscribe(t, c, outboxnats.SubscriberConfig{}, func(context.Context, *outbox.Message) error { handled.Add(1); return nil })
	eventually(t, "all acknowledged", func() bool { return unsettled(t, c) == 0 })
	if handled.Load() != 400 {
		t.Errorf("handled %d messages, want each of 400 once", handled.Load())
	}
	if diff := cmp.Diff(outboxnats.SubscriberStats{Acknowledged: 400}, r.Stats()); diff != "" {
		t.Error(diff)
	}
}

func TestConcurrencyIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 60 {
		w.publish(t, event(fmt.Sprint(i), `{}`))
	}
	var now, most, handled atomic.Int64
	gate := make(chan struct{})
	subscribe(t, w.consumer(t, jetstream.ConsumerConfig{}), outboxnats.SubscriberConfig{Concurrency: 4},
		func(context.Context, *outbox.Message) error {
			n := now.Add(1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			<-gate
			now.Add(-1)
			handled.Add(1)
			return nil
		})
	eventually(t, "four handlers at once", func() bool { return now.Load() == 4 })
	close(gate)
	eventually(t, "all handled", func() bool { return handled.Load() == 60 })
	if most.Load() != 4 {
		t.Errorf("%d handlers at once, want 4", most.Load())
	}
}

func TestWhatFailsComesAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.consumer(t, jetstream.ConsumerConfig{})
	w.publish(t, event("k", `{}`))
	var calls atomic.Int64
	var log lockedBuffer
	r := subscribe(t, c, outboxnats.SubscriberConfig{Logger: slog.New(slog.NewTextHandler(&log, nil)), MinRetryDelay: 1, MaxRetryDelay: time.Millisecond},
		func(context.Context, *outbox.Message) error {
			switch calls.Add(1) {
			case 1:
				return errors.New("no stock")
			case 2:
				return fmt.Errorf("again: %w", inbox.ErrInFlight)
			case 3:
				return &inbox.PanicError{Value: "secret", Stack: "goroutine 7"}
			default:
				return nil
			}
		})
	eventually(t, "acknowledged", func() bool { return unsettled(t, c) == 0 })
	if diff := cmp.Diff(outboxnats.SubscriberStats{Acknowledged: 1, Retried: 3}, r.Stats()); diff != "" {
		t.Error(diff)
	}
	for _, want := range []string{"no stock", "attempt=1", "order.placed@1", "goroutine 7"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, log.String())
		}
	}
	if strings.Contains(log.String(), "in flight") || strings.Contains(log.String(), "secret") {
		t.Errorf("the log has what nobody needs:\n%s", log.String())
	}
}

func TestAHandlerMayTakeLongerThanAckWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.consumer(t, jetstream.ConsumerConfig{AckWait: 5 * time.Second})
	slow, behind := event("k", `slow`), event("k", `behind`)
	w.publish(t, slow, behind)
	var calls record
	progress, release := w.answers(t, 1), make(chan struct{})
	subscribe(t, c, outboxnats.SubscriberConfig{}, func(_ context.Context, m *outbox.Message) error {
		calls.add(string(m.Payload))
		if len(calls.all()) == 1 {
			<-release
		}
		return nil
	})
	heartbeats(t, progress, 6) // for longer than AckWait
	close(release)
	eventually(t, "acknowledged", func() bool { return unsettled(t, c) == 0 })
	if diff := cmp.Diff([]string{"slow", "behind"}, calls.all()); diff != "" {
		t.Error(diff)
	}
	info, err := c.Info(t.Context())
	check(t, err)
	if info.Delivered.Consumer != 2 {
		t.Errorf("%d deliveries, want 2", info.Delivered.Consumer)
	}
}

func TestEventsOfAKeyStayInOrderWhileOneFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.consumer(t, jetstream.ConsumerConfig{})
	const keys, each = 5, 12
	publish := func(from, to int) {
		for i := from; i < to; i++ {
			for k := range keys {
				w.publish(t, event(fmt.Sprint("k", k), fmt.Sprintf("k%d-%02d", k, i)))
			}
		}
	}
	publish(0, each/2)
	var applied record
	var failures sync.Map
	failed := make(chan struct{}, 1)
	r := subscribe(t, c, outboxnats.SubscriberConfig{Concurrency: 3}, func(_ context.Context, m *outbox.Message) error {
		body := string(m.Payload)
		n, _ := failures.LoadOrStore(body, new(atomic.Int64))
		if strings.HasPrefix(body, "k0-") && n.(*atomic.Int64).Add(1) <= 3 {
			select {
			case failed <- struct{}{}:
			default:
			}
			return errors.New("not yet")
		}
		applied.add(body)
		return nil
	})
	receive(t, failed)
	publish(each/2, each) // successors that are pulled only after the failure
	eventually(t, "all acknowledged", func() bool { return unsettled(t, c) == 0 })
	last := map[string]string{}
	for _, body := range applied.all() {
		key, _, _ := strings.Cut(body, "-")
		if body <= last[key] {
			t.Errorf("%s was applied behind %s", body, last[key])
		}
		last[key] = body
	}
	if got := len(applied.all()); got != keys*each {
		t.Errorf("applied %d events, want %d", got, keys*each)
	}
	if got := r.Stats().Retried; got != 3*each {
		t.Errorf("%d retries, want %d", got, 3*each)
	}
}

func TestAKeyThatFailsDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.consumer(t, jetstream.ConsumerConfig{})
	for range 50 {
		w.publish(t, event("bad", `bad`))
	}
	for i := range 20 {
		w.publish(t, event(fmt.Sprint(i), `good`))
	}
	var good atomic.Int64
	subscribe(t, c, outboxnats.SubscriberConfig{Concurrency: 2, MinRetryDelay: time.Hour, MaxRetryDelay: time.Hour},
		func(_ context.Context, m *outbox.Message) error {
			if m.Key == "bad" {
				return errors.New("never")
			}
			good.Add(1)
			return nil
		})
	eventually(t, "the others handled", func() bool { return good.Load() == 20 })
}

func TestSuccessorsGoOnWhenTheirPredecessorDoesNotComeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.consumer(t, jetstream.ConsumerConfig{AckWait: time.Second})
	w.publish(t, event("k", `first`), event("k", `second`))
	var deleted, handled sync.Once // either may be delivered again while the machine is busy
	done := make(chan struct{})
	subscribe(t, c, outboxnats.SubscriberConfig{}, func(_ context.Context, m *outbox.Message) error {
		if string(m.Payload) == "second" {
			handled.Do(func() { close(done) })
			return nil
		}
		deleted.Do(func() { // as if another subscriber had it now
			if err := w.stream.DeleteMsg(context.Background(), 1); err != nil {
				t.Error(err)
			}
		})
		return errors.New("failed once")
	})
	receive(t, done)
}

func TestDrainFinishesWhatRunsAndHandsBackTheRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.consumer(t, jetstream.ConsumerConfig{AckWait: time.Hour})
	for _, body := range []string{"1", "2", "3"} {
		w.publish(t, event("k", body))
	}
	for i := range 10 {
		w.publish(t, event(fmt.Sprint(i), "other"))
	}
	answers, err := w.nc.SubscribeSync("$JS.ACK.ORDERS.>")
	check(t, err)
	started, release := make(chan struct{}), make(chan struct{})
	first := subscribe(t, c, outboxnats.SubscriberConfig{Concurrency: 1}, func(ctx context.Context, m *outbox.Message) error {
		close(started) // a second call panics
		<-release
		return ctx.Err()
	})
	receive(t, started)
	eventually(t, "all pulled, up to the limit", func() bool {
		info, err := c.Info(t.Context())
		check(t, err)
		return info.NumAckPending >= 4
	})
	first.cancel()
	for range 3 {
		answer, err := answers.NextMsg(patience)
		check(t, err)
		if !strings.HasPrefix(string(answer.Data), "-NAK") {
			t.Errorf("answered %s while one is being handled", answer.Data)
		}
	}
	close(release)
	first.stop(t)
	if diff := cmp.Diff(outboxnats.SubscriberStats{Acknowledged: 1}, first.Stats()); diff != "" {
		t.Error(diff)
	}
	var rest record
	subscribe(t, c, outboxnats.SubscriberConfig{Concurrency: 1}, func(_ context.Context, m *outbox.Message) error {
		rest.add(string(m.Payload))
		return nil
	})
	eventually(t, "the rest handled soon, though AckWait is an hour", func() bool { return len(rest.all()) == 12 })
}

func TestDrainCancelsHandlersThatDoNotEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish(t, event("k", `{}`))
	started := make(chan struct{}, 1)
	r := subscribe(t, w.consumer(t, jetstream.ConsumerConfig{}), outboxnats.SubscriberConfig{DrainTimeout: 10 * time.Millisecond},
		func(ctx context.Context, _ *outbox.Message) error {
			started <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		})
	receive(t, started)
	r.stop(t)
}

func TestASubscriberOutlastsTheBrokersRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.consumer(t, jetstream.ConsumerConfig{AckWait: time.Second})
	got := make(chan string, 10)
	subscribe(t, c, outboxnats.SubscriberConfig{}, func(_ context.Context, m *outbox.Message) error { got <- string(m.Payload); return nil })
	w.publish(t, event("k", "before"))
	if body := receive(t, got); body != "before" {
		t.Fatalf("got %s", body)
	}
	w.server.Stop()
	check(t, w.server.Restart())
	after := event("k", "after")
	eventually(t, "published after the restart", func() bool { return publisher(t, w.js).Publish(t.Context(), after) == nil })
	for body := receive(t, got); body != "after"; body = receive(t, got) {
		if body != "before" { // whose acknowledgement may have been lost
			t.Fatalf("got %s", body)
		}
	}
}

func TestRunEndsWithTheConsumerOrTheConnection(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *world){
		"consumer deleted":  func(t *testing.T, w *world) { check(t, w.stream.DeleteConsumer(t.Context(), "stock")) },
		"connection closed": func(_ *testing.T, w *world) { w.nc.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.publish(t, event("k", `{}`))
			got := make(chan struct{}, 1)
			r := subscribe(t, w.consumer(t, jetstream.ConsumerConfig{}), outboxnats.SubscriberConfig{},
				func(context.Context, *outbox.Message) error { got <- struct{}{}; return nil })
			receive(t, got)
			end(t, w)
			err := receive(t, r.done)
			r.done <- err
			if err == nil {
				t.Error("Run returned nil")
			}
		})
	}
}

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestMessagesThatAreNoEvents(t *testing.T) {
	t.Parallel()
	valid := nats.Header{"CE-SpecVersion": {"1.0"}, "Ce-Id": {
		`"0198c0de-1111-7abc-8def-0123456789ab"`,
	}, "ce-type": {"order.placed@1"}, "TraceParent": {traceparent}}
	with := func(name, value string) nats.Header {
		h := nats.Header{name: {value}}
		for k, v := range valid {
			if k != name {
				h[k] = v
			}
		}
		return h
	}
	for name, c := range map[string]struct {
		header nats.Header
		want   outboxnats.SubscriberStats
	}{
		"other case and quotes": {valid, outboxnats.SubscriberStats{Acknowledged: 1}},
		"no headers":            {nil, outboxnats.SubscriberStats{Foreign: 1}},
		"other CloudEvent": {
			with("ce-type", "com.example.created"), outboxnats.SubscriberStats{Foreign: 1},
		},
		"a version too large": {
			with("ce-type", "order.placed@4294967297"), outboxnats.SubscriberStats{Foreign: 1},
		},
		"other specversion": {
			with("CE-SpecVersion", "2.0"), outboxnats.SubscriberStats{Foreign: 1},
		},
		"a type without end": {with("ce-type", strings.Repeat("secret", 100)+"@1"),
			outboxnats.SubscriberStats{Foreign: 1}},
		"broken UTF-8": {
			with("tenant", "a\xff"), outboxnats.SubscriberStats{Acknowledged: 1},
		},
		"a large header": {with("tenant", strings.Repeat("x", 50_000)), outboxnats.SubscriberStats{
			Acknowledged: 1,
		}},
		"no UUID": {
			with("Ce-Id", "secret"), outboxnats.SubscriberStats{Malformed: 1},
		},
		"half an escape": {
			with("ce-partitionkey", "secret%2"), outboxnats.SubscriberStats{Malformed: 1},
		},
		"overlong UTF-8": {
			with("ce-partitionkey", "secret%C0%A0"), outboxnats.SubscriberStats{Malformed: 1},
		},
		"no time": {
			with("ce-time", "secret"), outboxnats.SubscriberStats{Malformed: 1},
		},
		"the cause is no UUID": {
			with("ce-causationid", "secret"), outboxnats.SubscriberStats{Malformed: 1},
		},
		"lower-case escapes":     {with("ce-partitionkey", "%c3%a4%41"), outboxnats.SubscriberStats{Acknowledged: 1}},
		"escapes in a quotation": {with("ce-partitionkey", `"a \"b\""`), outboxnats.SubscriberStats{Acknowledged: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, err := w.js.PublishMsg(t.Context(), &nats.Msg{Subject: "orders.placed", Header: c.header, Data: []byte("secret")})
			check(t, err)
			var log lockedBuffer
			consumer := w.consumer(t, jetstream.ConsumerConfig{})
			r := subscribe(t, consumer, outboxnats.SubscriberConfig{Logger: slog.New(slog.NewTextHandler(&log, nil)), MinRetryDelay: time.Hour, MaxRetryDelay: time.Hour},
				func(_ context.Context, m *outbox.Message) error {
					if m.Headers[outbox.HeaderTraceparent] != traceparent {
						return fmt.Errorf("headers %v", m.Headers)
					}
					if m.Key != "" && m.Key != "äA" && m.Key != `a "b"` {
						return fmt.Errorf("key %s", m.Key)
					}
					return nil
				})
			eventually(t, fmt.Sprintf("want %+v", c.want), func() bool { return r.Stats() == c.want })
			if strings.Contains(log.String(), "secret") {
				t.Errorf("the log has a value:\n%s", log.String())
			}
			if settled := c.want.Malformed == 0; settled {
				eventually(t, "settled", func() bool { return unsettled(t, consumer) == 0 })
			} else if unsettled(t, consumer) != 1 || log.String() == "" {
				t.Error("what cannot be read is gone, or not logged")
			}
		})
	}
}

// TestAnInvalidHeaderOfAStrangerIsLeftOut: what a handler finds in a message can be passed on with
// what it enqueues.
func TestAnInvalidHeaderOfAStrangerIsLeftOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.consumer(t, jetstream.ConsumerConfig{})
	header := nats.Header{
		"ce-specversion": {"1.0"}, "ce-id": {"0198c0de-1111-7abc-8def-0123456789ab"}, "ce-type": {
			"order.placed@1",
		},
		"tenant": {"größe"}, "broken": {"a\xff"}, "huge": {strings.Repeat("x", 10_000)},
		"traceparent": {"rubbish"}, "tracestate": {"a=b"},
	}
	_, err := w.js.PublishMsg(t.Context(), &nats.Msg{Subject: "orders.placed", Header: header})
	check(t, err)
	got := make(chan map[string]string, 1)
	subscribe(t, c, outboxnats.SubscriberConfig{},
		func(_ context.Context, m *outbox.Message) error { got <- m.Headers; return nil })
	if diff := cmp.Diff(map[string]string{"tenant": "größe"}, receive(t, got)); diff != "" {
		t.Error(diff)
	}
}

// outcomes hands out outcomes and errors by the type of an event.
type outcomes map[string]func() (inbox.Outcome, error)

func (o outcomes) Handle(_ context.Context, m *outbox.Message) (inbox.Outcome, error) {
	return o[m.TypeName()]()
}

// TestEachDeliveryCountsAsWhatItWas has one event of each kind delivered.
func TestEachDeliveryCountsAsWhatItWas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.consumer(t, jetstream.ConsumerConfig{})
	undecodable := &payload.Error{Path: "order_id", Problem: "missing"}
	always := func(outcome inbox.Outcome, err error) func() (inbox.Outcome, error) {
		return func() (inbox.Outcome, error) { return outcome, err }
	}
	// once fails with err, and then applies.
	once := func(err error) func() (inbox.Outcome, error) {
		var calls atomic.Int64
		return func() (inbox.Outcome, error) {
			if calls.Add(1) == 1 {
				return inbox.OutcomeFailed, &inbox.HandlerError{Consumer: "stock", Err: err}
			}
			return inbox.OutcomeApplied, nil
		}
	}
	handler := outcomes{
		"applied@1":     always(inbox.OutcomeApplied, nil),
		"repeated@1":    always(inbox.OutcomeDuplicate, nil),
		"ignored@1":     always(inbox.OutcomeIgnored, nil),
		"failed@1":      once(errors.New("no stock")),
		"in.flight@1":   once(inbox.ErrInFlight),
		"unknown@2":     once(inbox.ErrUnknownVersion),
		"undecodable@1": once(undecodable),
		// its own event was invalid
		"emits@1": once(&outbox.EventError{Type: "other@1", Err: undecodable}),
	}
	for name := range handler {
		m := event("", "{}")
		var version int
		m.Type, version, _ = storage.ParseTypeName(name)
		m.Version = int32(version)
		w.publish(t, m)
	}
	r := subscribeHandler(t, c, outboxnats.SubscriberConfig{}, handler)
	eventually(t, "all settled", func() bool { return unsettled(t, c) == 0 })
	want := outboxnats.SubscriberStats{
		Acknowledged: 7, Duplicates: 1, Ignored: 1, Retried: 3, UnknownVersion: 1, Malformed: 1,
	}
	if diff := cmp.Diff(want, r.Stats()); diff != "" {
		t.Error(diff)
	}
}

// TestWhatComesAgainAndAgainIsLoggedOnce counts the lines on types that are ignored, and on
// versions that are handed back.
func TestWhatComesAgainAndAgainIsLoggedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.consumer(t, jetstream.ConsumerConfig{})
	for range 20 {
		for _, name := range []string{"ignored", "ignored.too", "unknown"} {
			m := event("", "{}")
			m.Type = name
			w.publish(t, m)
		}
	}
	var log lockedBuffer
	var handedBack atomic.Int64
	handler := handlerOutcome(func(m *outbox.Message) (inbox.Outcome, error) {
		if m.Type == "unknown" && handedBack.Add(1) <= 100 {
			return inbox.OutcomeFailed, inbox.ErrUnknownVersion
		}
		return inbox.OutcomeIgnored, nil
	})
	subscribeHandler(t, c, outboxnats.SubscriberConfig{
		Logger: slog.New(slog.NewTextHandler(&log, nil)), MinRetryDelay: 1,
		MaxRetryDelay: 10 * time.Millisecond,
	}, handler)
	eventually(t, "all settled", func() bool { return unsettled(t, c) == 0 })
	for _, line := range []string{"level=INFO.*event=ignored@1", "level=INFO.*event=ignored.too@1",
		"level=WARN.*event=unknown@1"} {
		if got := len(regexp.MustCompile(line).FindAllString(log.String(), -1)); got != 1 {
			t.Errorf("%d lines match %s, want 1:\n%s", got, line, log.String())
		}
	}
}

// TestTheOtherVersionOfAFactDoesNotWaitForTheUnknownOne: the version that the consumer knows stands
// behind the one that it does not, and no other process would take that. What follows of the key
// waits for both.
func TestTheOtherVersionOfAFactDoesNotWaitForTheUnknownOne(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int32{{2, 1}, {1, 2}, {3, 2, 1}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.consumer(t, jetstream.ConsumerConfig{AckWait: time.Hour})
			fact, successor := event("k", "fact"), event("k", "successor")
			for _, version := range order {
				m := *fact
				m.Version = version
				w.publish(t, &m)
			}
			w.publish(t, successor)
			var known atomic.Bool
			var applied record
			subscribeHandler(t, c, outboxnats.SubscriberConfig{},
				handlerOutcome(func(m *outbox.Message) (inbox.Outcome, error) {
					switch {
					case m.ID == successor.ID:
						applied.add("successor")
					case m.Version != 1 && known.Load():
						return inbox.OutcomeDuplicate, nil
					case m.Version != 1:
						return inbox.OutcomeFailed, inbox.ErrUnknownVersion
					default:
						applied.add("fact")
						known.Store(true)
					}
					return inbox.OutcomeApplied, nil
				}))
			eventually(t, "all settled", func() bool { return unsettled(t, c) == 0 })
			if diff := cmp.Diff([]string{"fact", "successor"}, applied.all()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestEveryVersionOfAFactIsKept: the stream must not take one for a duplicate of the other, and
// drops a real one.
func TestEveryVersionOfAFactIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m1 := event("k", "{}")
	m2 := *m1
	m2.Version = 2
	w.publish(t, m1, &m2, m1, &m2)
	info, err := w.stream.Info(t.Context())
	check(t, err)
	if info.State.Msgs != 2 {
		t.Errorf("the stream keeps %d messages, want each version once", info.State.Msgs)
	}
}

func TestConsumersThatWouldLoseMessagesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := handlerFunc(func(context.Context, *outbox.Message) error { return nil })
	for name, cfg := range map[string]jetstream.ConsumerConfig{
		"no acknowledgement":  {Durable: "none", AckPolicy: jetstream.AckNonePolicy},
		"all acknowledged":    {Durable: "all", AckPolicy: jetstream.AckAllPolicy},
		"limit on deliveries": {Durable: "limit", MaxDeliver: 5},
	} {
		if _, err := outboxnats.NewSubscriber(w.consumer(t, cfg), h, outboxnats.SubscriberConfig{}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	ok := w.consumer(t, jetstream.ConsumerConfig{BackOff: []time.Duration{time.Second}, MaxDeliver: -1})
	for name, cfg := range map[string]outboxnats.SubscriberConfig{
		"concurrency": {Concurrency: -1}, "delays": {MinRetryDelay: time.Hour, MaxRetryDelay: time.Minute}, "drain": {DrainTimeout: -1}, "handle": {HandleTimeout: -1},
	} {
		if _, err := outboxnats.NewSubscriber(ok, h, cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// lockedBuffer may be written to and read at the same time.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
