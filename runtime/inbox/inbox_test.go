package inbox_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/payload"
)

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

type placed struct {
	OrderID string `json:"order_id"`
}

func message(orderID string) *outbox.Message {
	return &outbox.Message{
		ID: uuid.New(), Type: "order.placed", Version: 1,
		Payload: []byte(`{"order_id":"` + orderID + `"}`),
		Headers: map[string]string{outbox.HeaderTraceparent: traceparent},
	}
}

type handle func(ctx context.Context, tx *memTx, m *outbox.Message, e placed) error

func record(_ context.Context, tx *memTx, _ *outbox.Message, e placed) error {
	tx.effect(e.OrderID)
	return nil
}

func newInbox(s *memStore, h handle) *inbox.Inbox[*memTx] {
	return inbox.New("stock", s, map[string]inbox.Route[*memTx]{"order.placed@1": inbox.RouteTo(h)})
}

func expect(t *testing.T, i *inbox.Inbox[*memTx], m *outbox.Message, want inbox.Outcome) {
	t.Helper()
	if got, err := i.Handle(t.Context(), m); got != want || err != nil {
		t.Fatalf("got %v, %v, want %v", got, err, want)
	}
}

func TestAnEventIsAppliedOnce(t *testing.T) {
	t.Parallel()
	s := newMemStore()
	i := newInbox(s, record)
	m := message("o1")
	expect(t, i, m, inbox.OutcomeApplied)
	expect(t, i, m, inbox.OutcomeDuplicate)
	expect(t, i, message("o2"), inbox.OutcomeApplied)
	if diff := cmp.Diff([]string{"o1", "o2"}, s.applied()); diff != "" {
		t.Error(diff)
	}
}

func TestTwoConsumersApplyTheSameEvent(t *testing.T) {
	t.Parallel()
	s := newMemStore()
	m := message("o1")
	routes := map[string]inbox.Route[*memTx]{"order.placed@1": inbox.RouteTo(record)}
	expect(t, inbox.New("stock", s, routes), m, inbox.OutcomeApplied)
	expect(t, inbox.New("billing", s, routes), m, inbox.OutcomeApplied)
	if got := len(s.applied()); got != 2 {
		t.Errorf("applied %d times, want once by each", got)
	}
}

func TestDeliveriesAtTheSameTimeApplyOnce(t *testing.T) {
	t.Parallel()
	s := newMemStore()
	started, release := make(chan struct{}), make(chan struct{})
	i := newInbox(s, func(ctx context.Context, tx *memTx, m *outbox.Message, e placed) error {
		close(started) // a second call panics
		<-release
		return record(ctx, tx, m, e)
	})
	m := message("o1")
	first := make(chan error, 1)
	go func() {
		outcome, err := i.Handle(t.Context(), m)
		if outcome != inbox.OutcomeApplied {
			err = errors.Join(err, errors.New("first delivery: "+outcome.String()))
		}
		first <- err
	}()
	<-started
	var others sync.WaitGroup
	for range 20 {
		others.Go(func() {
			if outcome, err := i.Handle(t.Context(), m); outcome != inbox.OutcomeFailed ||
				!errors.Is(err, inbox.ErrInFlight) {
				t.Errorf("got %v, %v, want ErrInFlight", outcome, err)
			}
		})
	}
	others.Wait()
	close(release)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	expect(t, i, m, inbox.OutcomeDuplicate)
}

func TestAnotherEventInFlightIsAFailureOfThisOne(t *testing.T) {
	t.Parallel()
	var i *inbox.Inbox[*memTx]
	i = newInbox(newMemStore(),
		func(ctx context.Context, _ *memTx, m *outbox.Message, _ placed) error {
			_, err := i.Handle(ctx, m) // which is in flight: here
			return err
		})
	if outcome, err := i.Handle(t.Context(), message("o1")); outcome != inbox.OutcomeFailed ||
		err == nil || errors.Is(err, inbox.ErrInFlight) {
		t.Errorf("got %v, %v, want a failure that is not ErrInFlight", outcome, err)
	}
}

func TestAFailedDeliveryLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	boom := errors.New("no stock")
	for name, c := range map[string]struct {
		fail func()
		err  error
		want string
	}{
		"error": {nil, boom, "no stock"},
		"panic": {func() { panic("secret") }, nil, "panic with a string"},
		"panic of Go": {func() { _ = []int{}[len(name(t))] }, nil,
			"panic: runtime error: index out of range"},
		"panic by error": {func() { panic(boom) }, boom, "panic with a *errors.errorString"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newMemStore()
			failing := true
			i := newInbox(s,
				func(ctx context.Context, tx *memTx, m *outbox.Message, e placed) error {
					if err := record(ctx, tx, m, e); err != nil || !failing {
						return err
					}
					if c.fail != nil {
						c.fail()
					}
					return c.err
				})
			m := message("o1")
			outcome, err := i.Handle(t.Context(), m)
			var he *inbox.HandlerError
			if outcome != inbox.OutcomeFailed || !errors.As(err, &he) || c.err != nil &&
				!errors.Is(err, c.err) {
				t.Fatalf("got %v, %v", outcome, err)
			}
			if he.Consumer != "stock" || he.Type != "order.placed@1" || he.ID != m.ID ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			var pe *inbox.PanicError
			if errors.As(err, &pe) != (c.fail != nil) || pe != nil &&
				!strings.Contains(pe.Stack, "inbox_test.go") {
				t.Errorf("got %#v", he.Err)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error quotes the panic's value: %v", err)
			}
			failing = false
			expect(t, i, m, inbox.OutcomeApplied)
			if diff := cmp.Diff([]string{"o1"}, s.applied()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// name keeps the compiler from seeing that an index is out of range.
func name(t *testing.T) string { return t.Name() }

func TestAPayloadThatCannotBeDecodedIsNotQuoted(t *testing.T) {
	t.Parallel()
	i := newInbox(newMemStore(), record)
	m := message("o1")
	m.Payload = []byte(`{"order_id":["secret"]}`)
	_, err := i.Handle(t.Context(), m)
	var pe *payload.Error
	if !errors.As(err, &pe) || pe.Path != "order_id" || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

func TestADuplicateRepairs(t *testing.T) {
	t.Parallel()
	s := newMemStore()
	rings, stop := s.bell.Wait()
	defer stop()
	i := newInbox(s, record)
	m := message("o1")
	expect(t, i, m, inbox.OutcomeApplied)
	if !rung(rings) {
		t.Error("not rung after a commit")
	}
	s.pending[m.ID] = 2
	expect(t, i, m, inbox.OutcomeDuplicate)
	if len(s.pending) != 0 || !rung(rings) {
		t.Errorf("pending %v; want all due, and rung", s.pending)
	}
	expect(t, i, m, inbox.OutcomeDuplicate)
	if rung(rings) {
		t.Error("rung though nothing became due")
	}
}

// rung reports whether the bell was rung since it was asked before.
func rung(rings <-chan struct{}) bool {
	select {
	case <-rings:
		return true
	default:
		return false
	}
}

func TestOtherEventsAreIgnored(t *testing.T) {
	t.Parallel()
	i := newInbox(newMemStore(), record)
	for _, name := range []string{"order.cancelled", "order.placed.again", "order", ""} {
		m := message("o1")
		m.Type = name
		expect(t, i, m, inbox.OutcomeIgnored)
	}
}

// TestAnUnknownVersionIsHandedBack holds that another version of what the consumer handles is never
// acknowledged away, and has no effect that a process of another release would have to undo.
func TestAnUnknownVersionIsHandedBack(t *testing.T) {
	t.Parallel()
	s := newMemStore()
	release1 := newInbox(s, record)
	release2 := inbox.New("stock", s,
		map[string]inbox.Route[*memTx]{"order.placed@2": inbox.RouteTo(record)})
	m := message("o1")
	m.Version = 2
	for range 3 {
		outcome, err := release1.Handle(t.Context(), m)
		var he *inbox.HandlerError
		if outcome != inbox.OutcomeFailed || !errors.Is(err, inbox.ErrUnknownVersion) ||
			!errors.As(err, &he) || he.Type != "order.placed@2" {
			t.Fatalf("got %v, %v, want ErrUnknownVersion", outcome, err)
		}
	}
	expect(t, release2, m, inbox.OutcomeApplied)
	expect(t, release1, m, inbox.OutcomeDuplicate)
	// The other version of the same fact, which shares its id.
	m.Version = 1
	expect(t, release1, m, inbox.OutcomeDuplicate)
	if diff := cmp.Diff([]string{"o1"}, s.applied()); diff != "" {
		t.Error(diff)
	}
}

// forgetful is a store that has BaseStore's Handled.
type forgetful struct{ *memStore }

func (s forgetful) Handled(
	ctx context.Context, p inbox.HandledParams,
) (inbox.HandledResult, error) {
	return s.BaseStore.Handled(ctx, p)
}

func TestAStoreThatCannotRecallHandsBackToo(t *testing.T) {
	t.Parallel()
	s := newMemStore()
	plain := inbox.New("stock", inbox.Store[*memTx](forgetful{s}),
		map[string]inbox.Route[*memTx]{"order.placed@1": inbox.RouteTo(record)})
	m := message("o1")
	expect(t, plain, m, inbox.OutcomeApplied)
	m.Version = 2
	if outcome, err := plain.Handle(t.Context(), m); outcome != inbox.OutcomeFailed ||
		!errors.Is(err, inbox.ErrUnknownVersion) {
		t.Errorf("got %v, %v, want ErrUnknownVersion", outcome, err)
	}
}

func TestAnUnknownVersionWithinAHandlerIsAFailureOfThisEvent(t *testing.T) {
	t.Parallel()
	other := newInbox(newMemStore(), record)
	i := newInbox(newMemStore(), func(ctx context.Context, _ *memTx, _ *outbox.Message,
		_ placed) error {
		m := message("o2")
		m.Version = 2
		_, err := other.Handle(ctx, m)
		return err
	})
	if outcome, err := i.Handle(t.Context(), message("o1")); outcome != inbox.OutcomeFailed ||
		err == nil || errors.Is(err, inbox.ErrUnknownVersion) {
		t.Errorf("got %v, %v, want a failure that is not ErrUnknownVersion", outcome, err)
	}
}

func TestAnInvalidTraceparentIsIgnored(t *testing.T) {
	t.Parallel()
	i := newInbox(newMemStore(), func(ctx context.Context, _ *memTx, _ *outbox.Message,
		_ placed) error {
		if got := outbox.Traceparent(ctx); got != "" {
			t.Errorf("got traceparent %q, want none", got)
		}
		return nil
	})
	for _, invalid := range []string{"", "rubbish", "a\r\nb", " " + traceparent, "00-\xff"} {
		m := message("o1")
		m.Headers[outbox.HeaderTraceparent] = invalid
		expect(t, i, m, inbox.OutcomeApplied)
	}
}

func TestAFailedCommitIsAFailure(t *testing.T) {
	t.Parallel()
	s := newMemStore()
	s.commitErr = errors.New("connection lost")
	rings, stop := s.bell.Wait()
	defer stop()
	i := newInbox(s, record)
	m := message("o1")
	if outcome, err := i.Handle(t.Context(), m); outcome != inbox.OutcomeFailed ||
		!errors.Is(err, s.commitErr) {
		t.Fatalf("got %v, %v", outcome, err)
	}
	if rung(rings) {
		t.Error("rung without a commit")
	}
	s.commitErr = nil
	expect(t, i, m, inbox.OutcomeApplied)
}

func TestACancelledDeliveryIsAFailure(t *testing.T) {
	t.Parallel()
	s := newMemStore()
	ctx, cancel := context.WithCancel(t.Context())
	i := newInbox(s, func(ctx context.Context, tx *memTx, m *outbox.Message, e placed) error {
		cancel()
		return record(ctx, tx, m, e)
	})
	if outcome, err := i.Handle(ctx, message("o1")); outcome != inbox.OutcomeFailed ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", outcome, err)
	}
	if got := s.applied(); len(got) != 0 {
		t.Errorf("applied %v", got)
	}
}

func TestHandlersKnowTheMessageAndItsTrace(t *testing.T) {
	t.Parallel()
	m := message("o1")
	i := newInbox(newMemStore(),
		func(ctx context.Context, _ *memTx, given *outbox.Message, _ placed) error {
			if given != m {
				t.Errorf("message: got %v", given)
			}
			if got := outbox.Traceparent(ctx); got != traceparent {
				t.Errorf("Traceparent: got %q", got)
			}
			return nil
		})
	expect(t, i, m, inbox.OutcomeApplied)
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(){
		"no consumer": func() {
			inbox.New("", inbox.Store[*memTx](newMemStore()),
				map[string]inbox.Route[*memTx]{})
		},
		"no store":  func() { inbox.New[*memTx]("stock", nil, map[string]inbox.Route[*memTx]{}) },
		"no routes": func() { inbox.New("stock", inbox.Store[*memTx](newMemStore()), nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}
