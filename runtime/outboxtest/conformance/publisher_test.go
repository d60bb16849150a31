package conformance_test

import (
	"context"
	"testing"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
	"github.com/outboxgen/outboxgen/runtime/outboxtest/conformance"
)

func TestRecordingPublisher(t *testing.T) {
	conformance.TestPublisher(t, func(*testing.T) conformance.PublisherHarness {
		p, seen := &outboxtest.RecordingPublisher{}, 0
		return conformance.PublisherHarness{
			Publisher: p,
			Receive: func(ctx context.Context, n int) ([]outbox.Message, error) {
				all, err := p.Wait(ctx, seen+n)
				if err != nil {
					return nil, err
				}
				seen += n
				return all[seen-n : seen], nil
			},
		}
	})
}
