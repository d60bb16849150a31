package subscribe_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/runtime/cloudevents"
	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outboxtest/conformance"
	"github.com/outboxgen/outboxgen/runtime/subscribe"
)

// broker is a broker in memory, with one consumer.
type broker struct {
	ackWait time.Duration

	mu         sync.Mutex
	down       bool
	kept       []*kept
	sequence   uint64
	extensions int
	released   int
	changed    chan struct{} // closed at the next change
}

// kept is a message that is not acknowledged.
type kept struct {
	message  *outbox.Message
	err      error
	sequence uint64
	attempt  int
	due      time.Time // when it may be delivered
}

func newBroker(ackWait time.Duration) *broker {
	return &broker{ackWait: ackWait, changed: make(chan struct{})}
}

var errDown = errors.New("the broker is down")

// change runs f, and wakes those that wait for messages. It does nothing while the broker is down.
func (b *broker) change(f func()) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return errDown
	}
	f()
	close(b.changed)
	b.changed = make(chan struct{})
	return nil
}

func (b *broker) setDown(down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = down
}

// Publish implements outbox.Publisher.
func (b *broker) Publish(_ context.Context, m *outbox.Message) error {
	copied := *m
	return outbox.Unreachable(b.keep(&copied, nil))
}

func (b *broker) keep(m *outbox.Message, err error) error {
	return b.change(func() {
		b.sequence++
		b.kept = append(b.kept, &kept{message: m, err: err, sequence: b.sequence})
	})
}

// source is a member's connection.
type source struct {
	*broker
	crashed bool // guarded by broker.mu
}

func (s *source) AckWait() time.Duration { return s.ackWait }

func (s *source) crash() {
	_ = s.change(func() { s.crashed = true })
}

// fetchWait is how long a fetch waits for the first message.
const fetchWait = 20 * time.Millisecond

// Fetch implements subscribe.Source.
func (s *source) Fetch(ctx context.Context, n int, deliver func(*subscribe.Delivery)) error {
	timeout := time.NewTimer(fetchWait)
	defer timeout.Stop()
	for last := false; ; {
		deliveries, changed, err := s.take(n)
		for _, d := range deliveries {
			deliver(d)
		}
		if err != nil || len(deliveries) > 0 || last {
			return err
		}
		select {
		case <-changed:
		case <-timeout.C:
			last = true
		case <-ctx.Done():
			return nil
		}
	}
}

// take hands out up to n messages that are due.
func (s *source) take(n int) (all []*subscribe.Delivery, changed <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.crashed:
		return nil, nil, fmt.Errorf("closed: %w", subscribe.ErrConsumerGone)
	case s.down:
		return nil, nil, errDown
	}
	now := time.Now()
	for _, k := range s.kept {
		if len(all) == n {
			break
		}
		if k.due.After(now) {
			continue
		}
		k.attempt++
		k.due = now.Add(s.ackWait)
		d := &subscribe.Delivery{
			Err: k.err, Topic: conformance.Topic, Sequence: k.sequence, Attempt: k.attempt,
			Receipt: &receipt{source: s, kept: k, attempt: k.attempt},
		}
		if k.err == nil {
			m := *k.message
			d.Message = &m
		}
		all = append(all, d)
	}
	return all, s.changed, nil
}

// receipt answers one delivery. It is void once the message was delivered again, or its member has
// crashed.
type receipt struct {
	source   *source
	kept     *kept
	attempt  int
	answered bool
}

func (r *receipt) change(f func()) error {
	var err error
	return errors.Join(r.source.change(func() {
		switch {
		case r.source.crashed:
			err = errors.New("the member has crashed")
		case r.kept.attempt == r.attempt && !r.answered:
			f()
		}
	}), err)
}

func (r *receipt) forget() {
	r.answered = true
	r.source.kept = slices.DeleteFunc(r.source.kept, func(k *kept) bool { return k == r.kept })
}

func (r *receipt) Ack(context.Context) error            { return r.change(r.forget) }
func (r *receipt) Reject(context.Context, string) error { return r.change(r.forget) }

func (r *receipt) Nack(_ context.Context, delay time.Duration) error {
	return r.change(func() { r.answered, r.kept.due = true, time.Now().Add(delay) })
}

func (r *receipt) Release(context.Context) error {
	return r.change(func() {
		r.answered, r.kept.due = true, time.Now().Add(2*fetchWait)
		r.source.released++
	})
}

func (r *receipt) Extend(context.Context) error {
	return r.change(func() {
		r.kept.due = time.Now().Add(r.source.ackWait)
		r.source.extensions++
	})
}

// count reads one of the broker's figures.
func (b *broker) count(figure func() int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return figure()
}

// TestSubscriberOnABrokerInMemory also shows that the suite can be passed without a server.
func TestSubscriberOnABrokerInMemory(t *testing.T) {
	conformance.TestSubscriber(t,
		func(_ *testing.T, ackWait time.Duration) conformance.SubscriberHarness {
			b := newBroker(ackWait)
			return conformance.SubscriberHarness{
				Publisher: b,
				PublishForeign: func(context.Context) error {
					return b.keep(nil, cloudevents.ErrForeign)
				},
				PublishMalformed: func(context.Context) error {
					return b.keep(nil, &cloudevents.AttributeError{
						Attribute: "time", Problem: "is missing",
					})
				},
				Subscribe: func(h inbox.Handler, c subscribe.Config) (conformance.Member, error) {
					source := &source{broker: b}
					s, err := subscribe.New(source, h, c)
					return conformance.Member{Subscriber: s, Crash: source.crash}, err
				},
				Unsettled: func(context.Context) (int, error) {
					return b.count(func() int { return len(b.kept) }), nil
				},
				Extensions: func() int { return b.count(func() int { return b.extensions }) },
				Stop:       func() { b.setDown(true) },
				Restart:    func() { b.setDown(false) },
			}
		})
}
