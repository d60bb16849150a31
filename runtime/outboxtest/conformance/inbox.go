package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// InboxHarness is an inbox's store under test and the outbox of the same database, both empty. The
// outbox has 16 shards.
type InboxHarness[Tx any] struct {
	Store   inbox.Store[Tx]
	Outbox  storage.Store
	Enqueue func(ctx context.Context, tx Tx, e outboxtest.Event,
		opts ...outbox.EnqueueOption) (outbox.ID, error)
	// Break makes the commit of tx fail, for instance by closing its connection.
	Break func(tx Tx)
}

// TestInbox checks that a store keeps the promises of inbox.Store, by itself and with an inbox.
// Open is called for every test and may register clean-ups with t.
func TestInbox[Tx any](t *testing.T, open func(t *testing.T) InboxHarness[Tx]) {
	for name, test := range map[string]func(*consuming[Tx]){
		"an event is fresh once":                                 (*consuming[Tx]).testFreshOnce,
		"a delivery does not wait for one that is being handled": (*consuming[Tx]).testInFlight,
		"a rollback leaves no " +
			"claim": (*consuming[Tx]).testClaimRolledBack,
		"a commit that fails leaves no claim": (*consuming[Tx]).testCommitFails,
		"a panic leaves no " +
			"claim": (*consuming[Tx]).testPanicRollsBack,
		"two consumers handle the same " +
			"event": (*consuming[Tx]).testTwoConsumers,
		"a claim that is not fresh leaves the transaction " +
			"usable": (*consuming[Tx]).testTransactionStaysUsable,
		"a redispatch makes due what the event caused": (*consuming[Tx]).testRedispatch,
		"effects happen once under failures":           (*consuming[Tx]).testEffectsOnce,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			test(&consuming[Tx]{world: &world{T: t, outbox: h.Outbox}, InboxHarness: h})
		})
	}
}

// consuming has one test's inbox, with helpers that fail the test.
type consuming[Tx any] struct {
	*world // of the outbox
	InboxHarness[Tx]
}

const consumer = "witness"

var errRollback = errors.New("outboxtest: roll back")

// inTx runs f in a transaction that commits if f returns nil.
func (c *consuming[Tx]) inTx(f func(ctx context.Context, tx Tx) error) error {
	ctx, cancel := context.WithTimeout(c.Context(), hangTimeout)
	defer cancel()
	_, err := c.InboxHarness.Store.InTx(ctx, inbox.InTxParams[Tx]{
		Run: func(tx Tx) error { return f(ctx, tx) },
	})
	return err
}

// claim claims an event in a transaction of its own, which ends with result, and expects an answer.
func (c *consuming[Tx]) claim(consumer string, event outbox.ID, want inbox.Claim, result error) {
	c.Helper()
	err := c.inTx(func(ctx context.Context, tx Tx) error {
		c.claimIn(ctx, tx, consumer, event, want)
		return result
	})
	if !errors.Is(err, result) {
		c.Errorf("InTx returned %v, want %v", err, result)
	}
}

func (c *consuming[Tx]) claimIn(
	ctx context.Context, tx Tx, consumer string, event outbox.ID, want inbox.Claim,
) {
	c.Helper()
	got, err := c.InboxHarness.Store.Claim(ctx, tx,
		inbox.ClaimParams{Consumer: consumer, Event: event})
	if err != nil || got.Claim != want {
		c.Errorf("claim: got %q, %v, want %q", got.Claim, err, want)
	}
}

func (c *consuming[Tx]) testFreshOnce() {
	a, b := uuid.New(), uuid.New()
	c.claim(consumer, a, inbox.ClaimFresh, nil)
	c.claim(consumer, a, inbox.ClaimDuplicate, nil)
	c.claim(consumer, b, inbox.ClaimFresh, nil)
	c.claim(consumer, a, inbox.ClaimDuplicate, errRollback)
	c.claim(consumer, a, inbox.ClaimDuplicate, nil)
}

func (c *consuming[Tx]) testInFlight() {
	for _, result := range []error{nil, errRollback} {
		event := uuid.New()
		err := c.inTx(func(ctx context.Context, tx Tx) error {
			c.claimIn(ctx, tx, consumer, event, inbox.ClaimFresh)
			var others sync.WaitGroup
			// None waits for the end of this transaction, or all end with an error when hangTimeout
			// does.
			for range 10 {
				others.Go(func() { c.claim(consumer, event, inbox.ClaimInFlight, nil) })
			}
			others.Go(func() { c.claim("another", event, inbox.ClaimFresh, nil) })
			others.Go(func() { c.claim(consumer, uuid.New(), inbox.ClaimFresh, nil) })
			others.Wait()
			return result
		})
		if !errors.Is(err, result) {
			c.Fatalf("InTx returned %v, want %v", err, result)
		}
		want := inbox.ClaimDuplicate
		if result != nil {
			want = inbox.ClaimFresh
		}
		c.claim(consumer, event, want, nil)
	}
}

func (c *consuming[Tx]) testClaimRolledBack() {
	event := uuid.New()
	c.claim(consumer, event, inbox.ClaimFresh, errRollback)
	c.claim(consumer, event, inbox.ClaimFresh, nil)
	c.claim(consumer, event, inbox.ClaimDuplicate, nil)
}

func (c *consuming[Tx]) testCommitFails() {
	event := uuid.New()
	err := c.inTx(func(ctx context.Context, tx Tx) error {
		c.claimIn(ctx, tx, consumer, event, inbox.ClaimFresh)
		if _, err := c.Enqueue(ctx, tx, outboxtest.Event{Entity: "a"}); err != nil {
			c.Errorf("enqueue: %v", err)
		}
		c.Break(tx)
		return nil
	})
	if err == nil {
		c.Fatal("InTx returned nil though the commit failed")
	}
	c.equal("events", len(c.all()), 0)
	c.eventually("the claim is gone", func() bool {
		claim := inbox.ClaimInFlight // until the database has noticed
		err := c.inTx(func(ctx context.Context, tx Tx) error {
			r, err := c.InboxHarness.Store.Claim(ctx, tx,
				inbox.ClaimParams{Consumer: consumer, Event: event})
			claim = r.Claim
			return err
		})
		if err != nil || claim == inbox.ClaimDuplicate {
			c.Fatalf("claim: got %q, %v, want %q", claim, err, inbox.ClaimFresh)
		}
		return claim == inbox.ClaimFresh
	})
}

func (c *consuming[Tx]) testPanicRollsBack() {
	event := uuid.New()
	func() {
		defer func() {
			if recover() == nil {
				c.Error("InTx swallowed the panic")
			}
		}()
		_ = c.inTx(func(ctx context.Context, tx Tx) error {
			c.claimIn(ctx, tx, consumer, event, inbox.ClaimFresh)
			panic("outboxtest: panic")
		})
	}()
	c.claim(consumer, event, inbox.ClaimFresh, nil)
}

func (c *consuming[Tx]) testTwoConsumers() {
	event := uuid.New()
	for _, name := range []string{consumer, "another"} {
		c.claim(name, event, inbox.ClaimFresh, nil)
		c.claim(name, event, inbox.ClaimDuplicate, nil)
	}
}

func (c *consuming[Tx]) testTransactionStaysUsable() {
	handled, held := uuid.New(), uuid.New()
	c.claim(consumer, handled, inbox.ClaimFresh, nil)
	c.must(c.inTx(func(ctx context.Context, tx Tx) error {
		c.claimIn(ctx, tx, consumer, held, inbox.ClaimFresh)
		return c.inTx(func(ctx context.Context, tx Tx) error {
			c.claimIn(ctx, tx, consumer, handled, inbox.ClaimDuplicate)
			c.claimIn(ctx, tx, consumer, held, inbox.ClaimInFlight)
			_, err := c.Enqueue(ctx, tx, outboxtest.Event{Entity: "a"})
			return err
		})
	}))
	c.equal("events", len(c.all()), 1)
}

func (c *consuming[Tx]) testRedispatch() {
	cause, other := uuid.New(), uuid.New()
	c.must(c.inTx(func(ctx context.Context, tx Tx) error {
		for n, causation := range []outbox.ID{cause, cause, cause, other, uuid.Nil} {
			if _, err := c.Enqueue(ctx, tx,
				outboxtest.Event{Entity: fmt.Sprint("entity ", n), N: int64(n)},
				outbox.WithCausation(causation)); err != nil {
				return err
			}
		}
		return nil
	}))
	relay, owned := c.join(time.Minute)
	var retries []storage.Retry
	for _, m := range c.all() {
		switch number(&m.Message) {
		case 0: // never tried
		case 1: // tried, and due
			retries = append(retries,
				storage.Retry{Position: m.Position, Attempts: 1, Error: "now"})
		default:
			retries = append(retries,
				storage.Retry{Position: m.Position, Attempts: 2, Delay: time.Hour, Error: "later"})
		}
	}
	c.settle(storage.SettleParams{Relay: relay, Owned: owned, Retries: retries})
	redispatch := func(want int, result error) {
		c.Helper()
		err := c.inTx(func(ctx context.Context, tx Tx) error {
			r, err := c.InboxHarness.Store.Redispatch(ctx, tx,
				inbox.RedispatchParams{Causation: cause})
			if err != nil || r.Due != want {
				c.Errorf("redispatch: got %d, %v, want %d", r.Due, err, want)
			}
			return result
		})
		if !errors.Is(err, result) {
			c.Fatalf("InTx returned %v, want %v", err, result)
		}
	}
	waiting := func(want string) {
		c.Helper()
		got := map[int64]string{}
		for _, m := range c.all() {
			got[number(&m.Message)] = fmt.Sprint(m.Attempts, m.NotDue)
		}
		c.equal("attempts and waiting, by event", got, want)
	}
	redispatch(1, errRollback)
	waiting("map[0:0 false 1:1 false 2:2 true 3:2 true 4:2 true]")
	redispatch(1, nil)
	waiting("map[0:0 false 1:1 false 2:2 false 3:2 true 4:2 true]")
	redispatch(0, nil)
}

// testEffectsOnce has 20 subscribers deliver 50 events each, to handlers that fail half of the
// time. The effect is an event.
func (c *consuming[Tx]) testEffectsOnce() {
	const subscribers, events = 20, 50
	messages := make([]*outbox.Message, events)
	for n := range messages {
		messages[n] = message(fmt.Sprint("entity ", n))
		messages[n].Payload = fmt.Appendf(nil, `{"entity":"entity %d","n":%d}`, n, n)
	}
	i := inbox.New(consumer, c.InboxHarness.Store, map[string]inbox.Route[Tx]{
		"thing.happened@1": inbox.RouteTo(func(ctx context.Context, tx Tx, m *outbox.Message,
			e outboxtest.Event) error {
			if _, err := c.Enqueue(ctx, tx, e, outbox.WithCausation(m.ID)); err != nil {
				return err
			}
			switch rand.IntN(4) {
			case 0:
				panic("outboxtest: panic")
			case 1:
				return errRollback
			default:
				return nil
			}
		}),
	})
	var applied atomic.Int64
	var running sync.WaitGroup
	for range subscribers {
		running.Go(func() {
			for _, n := range rand.Perm(events) {
				if c.deliver(i, messages[n]) == inbox.OutcomeApplied {
					applied.Add(1)
				}
			}
		})
	}
	running.Wait()
	c.equal("deliveries that were applied", applied.Load(), events)
	effects := map[outbox.ID]int{}
	for _, m := range c.all() {
		effects[m.CausationID]++
	}
	for n, m := range messages {
		if effects[m.ID] != 1 {
			c.Errorf("event %d had %d effects", n, effects[m.ID])
		}
	}
}

// deliver hands m to the inbox until it is handled.
func (c *consuming[Tx]) deliver(h inbox.Handler, m *outbox.Message) inbox.Outcome {
	for {
		outcome, err := h.Handle(c.Context(), m)
		var panicked *inbox.PanicError
		switch {
		case err == nil:
			return outcome
		case !errors.Is(err, errRollback) && !errors.Is(err, inbox.ErrInFlight) &&
			!errors.As(err, &panicked):
			c.Errorf("handle: %v", err)
			return outcome
		}
		sleepABit(c.Context(), time.Duration(1+rand.IntN(5))*time.Millisecond)
	}
}
