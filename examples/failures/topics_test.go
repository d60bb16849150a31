package failures_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// The tests in this file run on a simulated clock, on the store in memory.

// about is an event without a key, on a topic that the test chooses.
type about struct {
	Topic string `json:"topic"`
	N     int64  `json:"n"`
}

func (a about) EventType() outbox.EventType {
	return outbox.EventType{Name: "about", Version: 1, Topic: a.Topic}
}

func (about) EventKey() string { return "" }

// abouts returns n events of each of the topics, alternating.
func abouts(n int, topics ...string) (list []outbox.Event) {
	for i := range n {
		for _, topic := range topics {
			list = append(list, about{topic, int64(i)})
		}
	}
	return list
}

func commit(t *testing.T, store *outboxtest.MemStore, list ...outbox.Event) {
	t.Helper()
	tx := store.Begin()
	_, err := tx.Enqueue(t.Context(), list)
	if err := errors.Join(err, tx.Commit()); err != nil {
		t.Fatal(err)
	}
}

// records collects log records.
type records struct {
	mu  sync.Mutex
	all []string
}

func (r *records) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, string(line))
	return len(line), nil
}

func (r *records) logger() *slog.Logger { return slog.New(slog.NewTextHandler(r, nil)) }

// with returns how many records contain a text.
func (r *records) with(text string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.all {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// broker is a publisher whose topics behave as the test says.
type broker struct {
	mu      sync.Mutex
	hangs   map[string]bool // topics that do not answer
	takes   map[string]time.Duration
	tried   map[string]int
	under   map[string]int // under way
	most    map[string]int // under way at once
	arrived map[string]int
}

func newBroker() *broker {
	return &broker{
		hangs: map[string]bool{}, takes: map[string]time.Duration{}, tried: map[string]int{},
		under: map[string]int{}, most: map[string]int{}, arrived: map[string]int{},
	}
}

func (b *broker) set(topic string, hangs bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hangs[topic] = hangs
}

func (b *broker) got(topic string) int { return b.of(b.arrived, topic) }

// of returns one of the broker's figures.
func (b *broker) of(figures map[string]int, topic string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return figures[topic]
}

// Publish implements outbox.Publisher.
func (b *broker) Publish(ctx context.Context, m *outbox.Message) error {
	b.mu.Lock()
	hangs, takes := b.hangs[m.Topic], b.takes[m.Topic]
	b.tried[m.Topic]++
	b.under[m.Topic]++
	b.most[m.Topic] = max(b.most[m.Topic], b.under[m.Topic])
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.under[m.Topic]--
	}()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	time.Sleep(takes)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.arrived[m.Topic]++
	return nil
}

// simulate runs a relay with the default settings on a simulated clock.
func simulate(
	t *testing.T, p outbox.Publisher, test func(*world, *outboxtest.MemStore, *outbox.Relay),
) {
	t.Helper()
	simulateWith(t, outbox.Config{Logger: silent()}, p, test)
}

func simulateWith(
	t *testing.T, c outbox.Config, p outbox.Publisher, test func(*world, *outboxtest.MemStore,
		*outbox.Relay),
) {
	t.Helper()
	inBubble(t, func(t *testing.T) {
		store := outboxtest.NewMemStore(shards)
		w := &world{T: t, reads: &counting{Store: store}}
		relay, stop := w.run(w.reads, p, c)
		test(w, store, relay)
		stop()
	})
}

// TestOpenIsTrueAsLongAsATopicCannotBeReached has few events pending, so that most of the time none
// is in memory to try the topic with.
func TestOpenIsTrueAsLongAsATopicCannotBeReached(t *testing.T) {
	for _, pending := range []int{1, 2, 20} {
		var tries atomic.Int64
		simulate(t, publisherFunc(func(context.Context, *outbox.Message) error {
			tries.Add(1)
			return outbox.Unreachable(errors.New("no stream"))
		}), func(w *world, store *outboxtest.MemStore, relay *outbox.Relay) {
			commit(w.T, store, things(pending, 1)...)
			time.Sleep(5 * time.Second)
			before := tries.Load()
			for range 6000 {
				time.Sleep(100 * time.Millisecond)
				if !relay.Stats().Open {
					w.Fatalf("%d pending: Open is false while the topic cannot be reached", pending)
				}
			}
			// With a bound of 15 s, of which three quarters pass on average, 600 s have room for 53
			// tries.
			if n := tries.Load() - before; n < 30 || n > 100 {
				w.Errorf("%d pending: tried %d times in ten minutes, want about 53", pending, n)
			}
		})
	}
}

// TestOpenIsFalseOnceNothingIsPendingThatCouldBeTried has an operator discard the events of a
// mistyped topic.
func TestOpenIsFalseOnceNothingIsPendingThatCouldBeTried(t *testing.T) {
	var log records
	inBubble(t, func(t *testing.T) {
		memory, ids := memory(t, things(1, 1)...)
		w, store := &world{T: t}, &hiding{MemStore: memory}
		relay, stop := w.run(store, publisherFunc(func(context.Context, *outbox.Message) error {
			return outbox.Unreachable(errors.New("no stream"))
		}), outbox.Config{Logger: log.logger()})
		defer stop()
		time.Sleep(time.Minute)
		w.equal("Open while it is pending", relay.Stats().Open, true)
		store.hide(ids[0])
		time.Sleep(5 * time.Minute)
		w.equal("Open when it is gone", relay.Stats().Open, false)
	})
	if n := log.with("no event is pending any more"); n != 1 {
		t.Errorf("got %d lines that say so, want one", n)
	}
}

// TestATopicThatDoesNotAnswerDelaysNoOther has a relay with 64 workers and 10 s for a publish. Some
// topics hang from the beginning, or only when they hold all workers.
func TestATopicThatDoesNotAnswerDelaysNoOther(t *testing.T) {
	bad := make([]string, 100)
	for i := range bad {
		bad[i] = fmt.Sprint("bad ", i)
	}
	for name, topics := range map[string][]string{
		"one": bad[:1], "five": bad[:5], "a hundred": bad,
	} {
		t.Run(name, func(t *testing.T) {
			for n := range 4 {
				later, inBatches := n%2 == 1, n >= 2
				b := newBroker()
				var p outbox.Publisher = b
				if inBatches { // with fewer workers
					p = outboxtest.InBatches(b)
				}
				simulate(t, p, func(w *world, store *outboxtest.MemStore, relay *outbox.Relay) {
					for _, topic := range topics {
						b.set(topic, !later)
						b.takes[topic] = 5 * time.Millisecond
					}
					if later {
						commit(w.T, store, abouts(10, topics...)...)
						time.Sleep(time.Second)
						for _, topic := range topics {
							b.set(topic, true)
						}
					}
					commit(w.T, store, abouts(5000/len(topics), topics...)...)
					time.Sleep(10 * time.Millisecond)
					commit(w.T, store, abouts(500, "good")...)
					time.Sleep(3 * time.Second) // less than the first time-out
					w.equal("published of the other topic", b.got("good"), 500)
					for range 20 { // and soon from then on
						before := b.got("good")
						commit(w.T, store, about{"good", 0})
						time.Sleep(2 * time.Second) // much less than a time-out
						w.equal("published", b.got("good"), before+1)
					}
					for _, topic := range topics {
						b.set(topic, false)
					}
					time.Sleep(time.Minute)
					w.equal("left", len(store.Pending()), 0)
					w.equal("attempts charged", w.reads.charged.Load(), 0)
					w.equal("dead letters, Open",
						fmt.Sprint(relay.Stats().Dead, relay.Stats().Open), "0 false")
				})
			}
		})
	}
}

// TestATopicThatAnswersMayUseAllWorkers, however slow it is, while a topic that does not answer
// gets a share of them.
func TestATopicThatAnswersMayUseAllWorkers(t *testing.T) {
	for _, takes := range []time.Duration{
		time.Millisecond, 300 * time.Millisecond, 4 * time.Second,
	} {
		b := newBroker()
		b.takes["slow"] = takes
		simulate(t, b, func(w *world, store *outboxtest.MemStore, relay *outbox.Relay) {
			const n = 64 * 20
			commit(w.T, store, abouts(n, "slow")...)
			time.Sleep(22*takes + 2*time.Second)
			w.equal("published", b.got("slow"), n)
			w.equal("publishes at once", b.of(b.most, "slow"), 64)
			w.equal("tries", b.of(b.tried, "slow"), n)
		})
	}
	b := newBroker()
	b.set("mute", true)
	simulate(t, b, func(w *world, store *outboxtest.MemStore, relay *outbox.Relay) {
		commit(w.T, store, abouts(1000, "mute")...)
		time.Sleep(time.Minute)
		w.equal("publishes at once", b.of(b.most, "mute"), 4)
		w.equal("Open", relay.Stats().Open, true)
	})
}

// TestASlowTopicBesideAFastOne shows that a slow topic is not taken for an unreachable one.
func TestASlowTopicBesideAFastOne(t *testing.T) {
	b := newBroker()
	b.takes["slow"] = 8 * time.Second // of the 10 s that a publish may take
	simulate(t, b, func(w *world, store *outboxtest.MemStore, relay *outbox.Relay) {
		commit(w.T, store, abouts(500, "slow", "fast")...)
		time.Sleep(3 * time.Second)
		w.equal("published of the fast one", b.got("fast"), 500)
		for b.got("slow") < 500 {
			w.equal("Open", relay.Stats().Open, false)
			time.Sleep(time.Second)
		}
		w.equal("tries", b.of(b.tried, "slow"), 500)
		w.equal("attempts charged", w.reads.charged.Load(), 0)
	})
}

// TestAPublisherThatIgnoresItsContextDelaysNoOtherTopic, although the relay cannot end before it
// returns.
func TestAPublisherThatIgnoresItsContextDelaysNoOtherTopic(t *testing.T) {
	released := make(chan struct{})
	b := newBroker()
	simulate(t, publisherFunc(func(ctx context.Context, m *outbox.Message) error {
		if m.Topic == "stuck" {
			<-released
			return ctx.Err()
		}
		return b.Publish(ctx, m)
	}), func(w *world, store *outboxtest.MemStore, relay *outbox.Relay) {
		released = make(chan struct{}) // made within the bubble
		defer close(released)
		commit(w.T, store, abouts(2000, "stuck")...)
		for i := range 60 {
			commit(w.T, store, abouts(50, "good")...)
			time.Sleep(2 * time.Second)
			w.equal("published", b.got("good"), 50*(i+1))
		}
	})
}

// TestAnEventThatGetsNoAnswerAlone has one event make the broker hang, while others of its topic
// are acknowledged. Its attempts are charged, and in the end it is a dead letter. It holds back its
// key and nothing else.
func TestAnEventThatGetsNoAnswerAlone(t *testing.T) {
	b := newBroker()
	simulate(t, publisherFunc(func(ctx context.Context, m *outbox.Message) error {
		if m.Key == "poison" {
			<-ctx.Done()
			return errors.New("i/o") // the error does not say that it is a time-out
		}
		return b.Publish(ctx, m)
	}), func(w *world, store *outboxtest.MemStore, relay *outbox.Relay) {
		commit(w.T, store, outboxtest.Event{Entity: "poison", N: 1})
		for range 3600 * 3 {
			commit(w.T, store, outboxtest.Event{Entity: "well", N: 1})
			time.Sleep(time.Second)
		}
		w.equal("dead letters", relay.Stats().Dead, 1)
		w.equal("published", relay.Stats().Published, 3600*3)
	})
}

// TestABreakerIsLoggedOnceWhenItOpensAndOnceWhenItCloses, with the topic and the error.
func TestABreakerIsLoggedOnceWhenItOpensAndOnceWhenItCloses(t *testing.T) {
	var log records
	var down atomic.Bool
	b := newBroker()
	down.Store(true)
	simulateWith(t, outbox.Config{
		Logger: log.logger(),
	}, publisherFunc(func(ctx context.Context, m *outbox.Message) error {
		if m.Topic == "down" && down.Load() {
			return outbox.Unreachable(errors.New("connection refused"))
		}
		return b.Publish(ctx, m)
	}), func(w *world, store *outboxtest.MemStore, relay *outbox.Relay) {
		commit(w.T, store, abouts(1000, "down", "up")...)
		time.Sleep(10 * time.Minute)
		w.equal("lines", fmt.Sprint(log.with("level=WARN"),
			log.with(`topic=down error="connection refused"`)), "1 1")
		down.Store(false)
		time.Sleep(time.Minute)
		w.equal("lines when it is over", fmt.Sprint(log.with("level=WARN"), log.with("level=INFO"),
			log.with("reached again")), "1 1 1")
		w.equal("left", len(store.Pending()), 0)
	})
}

// TestAPublisherThatHasGivenUpForGoodIsLoggedOnce, even if its breaker opened before that.
func TestAPublisherThatHasGivenUpForGoodIsLoggedOnce(t *testing.T) {
	var log records
	var closed atomic.Bool
	simulateWith(t, outbox.Config{
		Logger: log.logger(),
	}, publisherFunc(func(context.Context, *outbox.Message) error {
		if closed.Load() {
			return outbox.Unreachable(fmt.Errorf("closed for good: %w", outbox.ErrPublisherClosed))
		}
		return outbox.Unreachable(errors.New("reconnecting"))
	}), func(w *world, store *outboxtest.MemStore, relay *outbox.Relay) {
		commit(w.T, store, abouts(10, "one", "two")...)
		time.Sleep(time.Minute)
		closed.Store(true)
		time.Sleep(10 * time.Minute)
		w.equal("lines", fmt.Sprint(log.with("level=ERROR"), log.with("closed for good")), "1 1")
	})
}
