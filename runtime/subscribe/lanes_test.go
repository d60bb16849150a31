package subscribe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// patience ends a test that hangs.
const patience = time.Minute

// answers is a Receipt that keeps what it is told.
type answers struct {
	mu  sync.Mutex
	all []string
}

func (a *answers) add(answer string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, answer)
	return nil
}

func (a *answers) Ack(context.Context) error                 { return a.add("ack") }
func (a *answers) Nack(context.Context, time.Duration) error { return a.add("nack") }
func (a *answers) Release(context.Context) error             { return a.add("release") }
func (a *answers) Reject(context.Context, string) error      { return a.add("reject") }
func (a *answers) Extend(context.Context) error              { return a.add("extend") }

func (a *answers) got() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.all)
}

// dispatch is lanes whose handlers wait for the test.
type dispatch struct {
	*lanes
	*testing.T
	begun chan *Delivery
	end   chan time.Duration // what the next handler returns
}

func newDispatch(t *testing.T, concurrency int, ackWait time.Duration) *dispatch {
	d := &dispatch{T: t, begun: make(chan *Delivery, 100), end: make(chan time.Duration)}
	d.lanes = newLanes(concurrency, ackWait, func(delivery *Delivery) time.Duration {
		d.begun <- delivery
		return <-d.end
	})
	t.Cleanup(func() {
		d.stop(context.Background())
		close(d.end)
		d.running.Wait()
	})
	return d
}

func (d *dispatch) deliver(key string, sequence uint64) *answers {
	a := &answers{}
	d.add(d.Context(), &Delivery{
		Message:  &outbox.Message{ID: uuid.New(), Type: "x", Version: 1, Key: key},
		Sequence: sequence, Attempt: 1, Receipt: a,
	})
	return a
}

// expect waits until the delivery with the sequence begins.
func (d *dispatch) expect(sequence uint64) {
	d.Helper()
	select {
	case got := <-d.begun:
		if got.Sequence != sequence {
			d.Fatalf("sequence %d began, want %d", got.Sequence, sequence)
		}
	case <-time.After(patience):
		d.Fatalf("sequence %d did not begin", sequence)
	}
}

// finish ends the handler that runs, and waits until its lane has taken note.
func (d *dispatch) finish(delay time.Duration) {
	d.end <- delay
	<-d.freed
}

// waiting reports whether deliveries of the key wait for one that has to come again.
func (d *dispatch) waiting(key string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.byKey[laneKey{key: key}]
	return at != nil && at.current == nil && len(at.queue) > 0
}

func TestSuccessorsWaitUntilTheirPredecessorIsOverdue(t *testing.T) {
	t.Parallel()
	const delay, ackWait = time.Hour, time.Minute
	d := newDispatch(t, 1, ackWait)
	d.deliver("k", 1)
	d.deliver("k", 2)
	d.expect(1)
	before := time.Now()
	d.finish(delay)
	for name, began := range map[string]time.Time{
		"within the delay":   before.Add(delay),
		"within the AckWait": before.Add(delay + ackWait),
	} {
		d.noteFetch(began, began, true)
		d.passOverdue(t.Context())
		if !d.waiting("k") {
			t.Fatalf("%s: the successor does not wait", name)
		}
	}
	later := time.Now().Add(delay + ackWait + 1)
	d.noteFetch(later, later, false)
	d.passOverdue(t.Context())
	if !d.waiting("k") {
		t.Fatal("the successor does not wait, though the broker was silent")
	}
	d.noteFetch(later, later, true) // the event may need another AckWait after the silence
	d.passOverdue(t.Context())
	if !d.waiting("k") {
		t.Fatal("the successor does not wait, though the broker has only just answered again")
	}
	later = later.Add(ackWait + 1)
	d.noteFetch(later, later, true)
	d.passOverdue(t.Context())
	d.expect(2)
	d.finish(0)
}

func TestAPredecessorThatComesBackGoesFirst(t *testing.T) {
	t.Parallel()
	d := newDispatch(t, 1, time.Minute)
	d.deliver("k", 1)
	d.deliver("k", 3)
	d.expect(1)
	d.finish(time.Hour)
	d.deliver("k", 2)
	d.deliver("k", 1)
	for sequence := range uint64(3) {
		d.expect(sequence + 1)
		d.finish(0)
	}
	if d.byKey[laneKey{key: "k"}] != nil {
		t.Error("an empty lane is kept")
	}
}

func TestEventsWithoutAKeyWaitForNothing(t *testing.T) {
	t.Parallel()
	d := newDispatch(t, 1, time.Minute)
	d.deliver("", 1)
	d.expect(1)
	d.finish(time.Hour)
	d.deliver("", 2)
	d.expect(2)
	d.finish(0)
}

// TestRoom does not count what waits for a predecessor: it would leave none for other keys.
func TestRoom(t *testing.T) {
	t.Parallel()
	d := newDispatch(t, 2, time.Minute)
	for sequence := range uint64(5) {
		d.deliver("k", sequence+1)
	}
	d.expect(1)
	if got := d.room(); got != 8-5 {
		t.Errorf("room for %d, want 3", got)
	}
	d.finish(time.Hour)
	if got := d.room(); got != 8 {
		t.Errorf("room for %d while a key waits, want 8", got)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := d.waitForRoom(ended); got != 0 {
		t.Errorf("room for %d once ctx has ended, want 0", got)
	}
}

func TestWhatWaitsIsReleasedAtTheEnd(t *testing.T) {
	t.Parallel()
	d := newDispatch(t, 1, time.Minute)
	running, queued := d.deliver("k", 1), d.deliver("k", 2)
	d.expect(1)
	noSlot := d.deliver("other", 3)
	d.stop(t.Context())
	late := d.deliver("late", 4)
	d.finish(0)
	d.running.Wait()
	for name, a := range map[string]*answers{
		"in a queue": queued, "without a slot": noSlot, "too late": late,
	} {
		if got := fmt.Sprint(a.got()); got != "[release]" {
			t.Errorf("%s: answered %s, want a release", name, got)
		}
	}
	if got := running.got(); len(got) != 0 {
		t.Errorf("the one that ran: answered %s, want nothing from the lanes", got)
	}
}

func TestWhatIsHeldIsExtended(t *testing.T) {
	t.Parallel()
	d := newDispatch(t, 1, 3*time.Millisecond)
	held := []*answers{d.deliver("k", 1), d.deliver("k", 2), d.deliver("other", 3)}
	end := d.beginHeartbeats(t.Context())
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(patience)
	for _, a := range held {
		for ; len(a.got()) < 2; <-tick.C {
			if time.Now().After(deadline) {
				t.Fatal("not extended in time")
			}
		}
	}
	end()
	for _, a := range held {
		if got := a.got(); slices.ContainsFunc(got, func(s string) bool { return s != "extend" }) {
			t.Errorf("answered %s", got)
		}
	}
}

// TestNothingIsAnsweredOnceTheConsumerIsGone: the answer might reach a message of another one.
func TestNothingIsAnsweredOnceTheConsumerIsGone(t *testing.T) {
	t.Parallel()
	d := newDispatch(t, 1, time.Minute)
	held := []*answers{d.deliver("k", 1), d.deliver("k", 2)}
	d.expect(1)
	d.consumerGone.Store(true)
	d.extend(t.Context())
	d.stop(t.Context())
	held = append(held, d.deliver("k", 3))
	d.finish(0)
	for i, a := range held {
		if got := a.got(); len(got) != 0 {
			t.Errorf("delivery %d: answered %s", i+1, got)
		}
	}
}

func TestConfigDefaultsAreValid(t *testing.T) {
	t.Parallel()
	for _, c := range []Config{{}, {MinRetryDelay: time.Hour}, {MaxRetryDelay: time.Second}} {
		if _, err := New(nil, nil, c); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestConfigRefusesContradictions(t *testing.T) {
	t.Parallel()
	for field, c := range map[string]Config{
		"Concurrency":   {Concurrency: -1},
		"MinRetryDelay": {MinRetryDelay: -1},
		"MaxRetryDelay": {MinRetryDelay: time.Hour, MaxRetryDelay: time.Minute},
		"HandleTimeout": {HandleTimeout: -1},
		"DrainTimeout":  {DrainTimeout: -1},
	} {
		if _, err := New(nil, nil, c); err == nil || !strings.Contains(err.Error(), field+" is") {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

func TestNamesAreRememberedUpToALimit(t *testing.T) {
	t.Parallel()
	var o onceEach
	for i := range maxOnceEach {
		if name := fmt.Sprint(i); !o.first(name) || o.first(name) {
			t.Fatalf("name %d is not first once", i)
		}
	}
	if o.first("one more") {
		t.Error("a name is first beyond the limit")
	}
}
