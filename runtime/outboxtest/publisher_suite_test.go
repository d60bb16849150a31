package outboxtest_test

import (
	"context"
	"testing"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

func TestRecordingPublisher(t *testing.T) {
	outboxtest.TestPublisher(t, func(*testing.T) outboxtest.PublisherHarness {
		p, seen := &outboxtest.RecordingPublisher{}, 0
		return outboxtest.PublisherHarness{
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
