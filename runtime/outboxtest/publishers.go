package outboxtest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// RecordingPublisher keeps copies of published messages. The zero value is ready to use.
type RecordingPublisher struct {
	mu       sync.Mutex
	messages []outbox.Message
	changed  chan struct{} // closed at the next message
}

// Publish implements outbox.Publisher.
func (p *RecordingPublisher) Publish(_ context.Context, m *outbox.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := *m
	c.Payload, c.Headers = slices.Clone(m.Payload), maps.Clone(m.Headers)
	p.messages = append(p.messages, c)
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
	return nil
}

// Messages returns the messages published so far, in the order in which the calls returned.
func (p *RecordingPublisher) Messages() []outbox.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.messages)
}

// Wait waits until n messages were published or ctx ends, and returns those.
func (p *RecordingPublisher) Wait(ctx context.Context, n int) ([]outbox.Message, error) {
	for {
		p.mu.Lock()
		if len(p.messages) >= n {
			defer p.mu.Unlock()
			return slices.Clone(p.messages), nil
		}
		if p.changed == nil {
			p.changed = make(chan struct{})
		}
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return p.Messages(), ctx.Err()
		}
	}
}

// Fault is what a FaultyPublisher does with a message.
type Fault int

const (
	// Deliver passes the message on.
	Deliver Fault = iota
	// Refuse returns an error that costs an attempt.
	Refuse
	// RefuseForGood returns a permanent error.
	RefuseForGood
	// Unreachable returns an error that costs no attempt.
	Unreachable
	// LoseAcknowledgement passes the message on, and returns that the broker could not be reached.
	LoseAcknowledgement
	// Hang returns when the context ends.
	Hang
	// Panic panics.
	Panic
)

// ErrRefused is what a FaultyPublisher returns for Refuse and RefuseForGood.
var ErrRefused = errors.New("outboxtest: refused")

// FaultyPublisher asks Decide what to do with each message, and passes it to Next or fails. Decide
// may be called concurrently.
type FaultyPublisher struct {
	Next   outbox.Publisher
	Decide func(m *outbox.Message) Fault
}

// Publish implements outbox.Publisher.
func (p *FaultyPublisher) Publish(ctx context.Context, m *outbox.Message) error {
	switch p.Decide(m) {
	case Refuse:
		return ErrRefused
	case RefuseForGood:
		return outbox.Permanent(ErrRefused)
	case Unreachable:
		return outbox.Unreachable(errors.New("outboxtest: unreachable"))
	case LoseAcknowledgement:
		if err := p.Next.Publish(ctx, m); err != nil {
			return err
		}
		return outbox.Unreachable(errors.New("outboxtest: the acknowledgement was lost"))
	case Hang:
		<-ctx.Done()
		return ctx.Err()
	case Panic:
		panic("outboxtest: panic")
	default:
		return p.Next.Publish(ctx, m)
	}
}

// InBatches returns a publisher that takes batches, as those of many brokers do: it publishes the
// messages of a batch by p, all at the same time. If p panics, PublishBatch does.
func InBatches(p outbox.Publisher) outbox.BatchPublisher { return inBatches{p} }

type inBatches struct{ outbox.Publisher }

// PublishBatch implements outbox.BatchPublisher.
func (p inBatches) PublishBatch(ctx context.Context, batch []*outbox.Message) []error {
	errs := make([]error, len(batch))
	panics := make(chan any, len(batch))
	var running sync.WaitGroup
	for i, m := range batch {
		running.Go(func() {
			defer func() {
				if v := recover(); v != nil {
					panics <- v
				}
			}()
			errs[i] = p.Publish(ctx, m)
		})
	}
	running.Wait()
	select {
	case v := <-panics:
		panic(v)
	default:
		return errs
	}
}
