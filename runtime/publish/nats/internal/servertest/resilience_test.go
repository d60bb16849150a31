package servertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	outboxnats "github.com/outboxgen/outboxgen/runtime/publish/nats"
	"github.com/outboxgen/outboxgen/runtime/subscribe"
)

// TestRunEndsThoughNoPullWasToldOfTheEnd deletes the consumer while the subscriber has no room for
// more, and so no pull under way.
func TestRunEndsThoughNoPullWasToldOfTheEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *world){
		"consumer deleted": func(t *testing.T, w *world) {
			check(t, w.stream.DeleteConsumer(t.Context(), "stock"))
		},
		"stream deleted": func(t *testing.T, w *world) {
			check(t, w.js.DeleteStream(t.Context(), "ORDERS"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for i := range 4 {
				w.publish(t, event(fmt.Sprint(i), `{}`))
			}
			c := w.consumer(t, jetstream.ConsumerConfig{})
			release := make(chan struct{})
			r := start(t, c, outboxnats.SubscriberConfig{Concurrency: 1},
				func(context.Context, *outbox.Message) error { <-release; return nil })
			eventually(t, "no room", func() bool {
				info, err := c.Info(t.Context())
				check(t, err)
				return info.NumAckPending == 4 && info.NumWaiting == 0
			})
			end(t, w)
			close(release)
			err := receive(t, r.done)
			r.done <- err
			if !errors.Is(err, subscribe.ErrConsumerGone) {
				t.Errorf("Run returned %v, want ErrConsumerGone", err)
			}
		})
	}
}

// TestWhatIsReleasedDoesNotComeBackAtOnce: it would, over and over, while the last pull is under
// way.
func TestWhatIsReleasedDoesNotComeBackAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.consumer(t, jetstream.ConsumerConfig{})
	w.publish(t, event("k", "1"), event("k", "2"))
	started, release := make(chan struct{}), make(chan struct{})
	r := start(t, c, outboxnats.SubscriberConfig{}, func(context.Context, *outbox.Message) error {
		close(started) // a second call panics
		<-release
		return nil
	})
	receive(t, started)
	eventually(t, "both pulled, and a pull under way", func() bool {
		info, err := c.Info(t.Context())
		check(t, err)
		return info.NumAckPending == 2 && info.NumWaiting == 1
	})
	answers, err := w.nc.SubscribeSync("$JS.ACK.ORDERS.>")
	check(t, err)
	r.cancel()
	eventually(t, "the last pull has ended", func() bool {
		info, err := c.Info(t.Context())
		check(t, err)
		return info.NumWaiting == 0
	})
	close(release)
	r.stop(t)
	check(t, w.nc.Flush()) // the answers that the broker has got are here
	released := 0
	for n, _, _ := answers.Pending(); n > 0; n-- {
		answer, err := answers.NextMsg(patience)
		check(t, err)
		if strings.HasPrefix(string(answer.Data), "-NAK") {
			released++
		}
	}
	if released < 1 || released > 2 { // twice if the last pull had only just begun
		t.Errorf("released %d times, want once", released)
	}
}

// TestAnOutageDoesNotLetSuccessorsPass: what was handed back cannot come while the broker is away.
func TestAnOutageDoesNotLetSuccessorsPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.consumer(t, jetstream.ConsumerConfig{AckWait: time.Second})
	w.publish(t, event("k", "first"), event("k", "second"))
	var calls record
	start(t, c, outboxnats.SubscriberConfig{}, func(_ context.Context, m *outbox.Message) error {
		calls.add(string(m.Payload))
		if len(calls.all()) == 1 {
			w.server.Stop()
			return errors.New("failed once")
		}
		return nil
	})
	eventually(t, "the first failed", func() bool { return len(calls.all()) > 0 })
	<-time.After(6 * time.Second) // the outage, which outlasts the delay, AckWait, and two pulls
	check(t, w.server.Restart())
	eventually(t, "the second handled",
		func() bool { return slices.Contains(calls.all(), "second") })
	inOrder(t, calls.all())
}

// TestWhatHasNoRoomIsNotOverdue: what was handed back cannot come while the subscriber asks for
// nothing.
func TestWhatHasNoRoomIsNotOverdue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.consumer(t, jetstream.ConsumerConfig{AckWait: time.Second})
	var calls record
	slow, failed := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	cfg := outboxnats.SubscriberConfig{Concurrency: 2}
	start(t, c, cfg, func(_ context.Context, m *outbox.Message) error {
		if m.Key != "k" {
			<-slow
			return nil
		}
		calls.add(string(m.Payload))
		if first.CompareAndSwap(false, true) {
			<-failed
			return errors.New("failed once")
		}
		return nil
	})
	w.publish(t, event("k", "first"), event("k", "second"))
	eventually(t, "the first begun", first.Load)
	for i := range 20 {
		w.publish(t, event(fmt.Sprint(i), "slow"))
	}
	eventually(t, "no room", func() bool {
		info, err := c.Info(t.Context())
		check(t, err)
		return info.NumAckPending >= 8 && info.NumWaiting == 0
	})
	waits := w.answers(t, 2)
	close(failed)
	heartbeats(t, waits, 10) // for longer than the delay and AckWait
	close(slow)
	eventually(t, "the second handled",
		func() bool { return slices.Contains(calls.all(), "second") })
	inOrder(t, calls.all())
}

func TestAConsumersLimitOnPullsIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.consumer(t, jetstream.ConsumerConfig{MaxRequestBatch: 2})
	for range 10 {
		w.publish(t, event("", `{}`))
	}
	start(t, c, outboxnats.SubscriberConfig{},
		func(context.Context, *outbox.Message) error { return nil })
	eventually(t, "all acknowledged", func() bool { return unsettled(t, c) == 0 })
}

// TestAnAnswerToALostStreamReachesNoOther: a stream that is made anew counts from 1 again, and
// answers name messages by number.
func TestAnAnswerToALostStreamReachesNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish(t, event("k", "old"))
	started, release := make(chan struct{}), make(chan struct{})
	c := w.consumer(t, jetstream.ConsumerConfig{})
	r := start(t, c, outboxnats.SubscriberConfig{}, func(context.Context, *outbox.Message) error {
		close(started)
		<-release
		return nil
	})
	releaseOnce := sync.OnceFunc(func() { close(release) })
	t.Cleanup(releaseOnce) // if the test fails before
	receive(t, started)
	eventually(t, "a pull under way", func() bool {
		info, err := c.Info(t.Context())
		check(t, err)
		return info.NumWaiting == 1
	})
	config := w.stream.CachedInfo().Config
	check(t, w.js.DeleteStream(t.Context(), "ORDERS"))
	var err error
	w.stream, err = w.js.CreateStream(t.Context(), config)
	check(t, err)
	c = w.consumer(t, jetstream.ConsumerConfig{})
	w.publish(t, event("k", "new"))
	batch, err := c.Fetch(1)
	check(t, err)
	receive(t, batch.Messages())
	releaseOnce()
	if err := receive(t, r.done); err == nil {
		t.Error("Run returned nil")
	}
	r.done <- nil
	check(t, w.nc.Flush())
	if unsettled(t, c) != 1 {
		t.Error("the new message was acknowledged, and nobody has handled it")
	}
}
