package outbox_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// stuck is a broker that answers nothing before a publish is cancelled.
type stuck chan struct{}

func (s stuck) Publish(ctx context.Context, _ *outbox.Message) error {
	close(s) // one event is published once
	<-ctx.Done()
	return ctx.Err()
}

// TestRunWaitsNoLongerThanTheDrainTimeout has a publish under way that could take a quarter of an
// hour.
func TestRunWaitsNoLongerThanTheDrainTimeout(t *testing.T) {
	t.Parallel()
	store := outboxtest.NewMemStore(1)
	tx := store.Begin()
	if _, err := tx.Enqueue(t.Context(), []outbox.Event{LampSwitched{Room: "hall"}}); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	broker := make(stuck)
	relay, err := outbox.NewRelay(store, broker, outbox.Config{
		Lease: time.Hour, PublishTimeout: 15 * time.Minute, DrainTimeout: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- relay.Run(ctx) }()
	<-broker
	cancel()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "not drained in time") {
		t.Errorf("Run: got %v, want an error that says what happened", err)
	}
	if n := len(store.Pending()); n != 1 {
		t.Errorf("%d events are pending, want the one that was under way", n)
	}
}
