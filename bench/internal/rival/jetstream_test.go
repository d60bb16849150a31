package rival_test

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
)

var streamers = []rival.Streamer{rival.Relay{}, rival.River{}, rival.Forwarder{Batch: 70}}

func TestClientAndWorkerSendTheMessagesOfTheRelay(t *testing.T) {
	t.Parallel()
	const n = 100
	want := streamed(t, n, drainTo(t, rival.Relay{}, n))
	for name, publish := range map[string]publishTo{
		"the client alone": func(s *rival.Stream) (time.Duration, error) {
			return s.PublishAsync(t.Context(), rival.Uniform(n).Orders())
		},
		"River": drainTo(t, rival.River{}, n),
	} {
		got := streamed(t, n, publish)
		for i := range want {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Fatalf("%s sent\n%+v, want\n%+v", name, got[i], want[i])
			}
		}
	}
}

func TestForwarderSendsThePayloadsOfTheRelay(t *testing.T) {
	t.Parallel()
	const n = 100
	want := streamed(t, n, drainTo(t, rival.Relay{}, n))
	got := streamed(t, n, drainTo(t, rival.Forwarder{Batch: 70}, n))
	for i := range want {
		if got[i].Subject != want[i].Subject || !bytes.Equal(got[i].Data, want[i].Data) ||
			got[i].Header.Get(jetstream.MsgIDHeader) == "" {
			t.Fatalf("it sent\n%+v, want the payload of\n%+v and an id", got[i], want[i])
		}
	}
}

// publishTo publishes events to a stream.
type publishTo = func(*rival.Stream) (time.Duration, error)

// drainTo returns a function that drains a backlog of n events to a stream.
func drainTo(t *testing.T, c rival.Streamer, n int) publishTo {
	return func(s *rival.Stream) (time.Duration, error) {
		return rival.DrainTo(t.Context(), c, backlog(t, c, n), n, s)
	}
}

// streamed returns the messages that publish sends, in the order of their payloads, without the
// parts that differ from one enqueue to the next.
func streamed(t *testing.T, n int, publish publishTo) (all []*jetstream.RawStreamMsg) {
	t.Helper()
	_, err := rival.OnStream(t.Context(), n, func(s *rival.Stream) (time.Duration, error) {
		took, err := publish(s)
		for seq := range uint64(n) {
			m, e := s.GetMsg(t.Context(), seq+1)
			if err = errors.Join(err, e); e == nil {
				all = append(all, anonymous(t, m))
			}
		}
		return took, err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b *jetstream.RawStreamMsg) int {
		return bytes.Compare(a.Data, b.Data)
	})
	return all
}

// anonymous removes from a message its sequence, its times and its id.
func anonymous(t *testing.T, m *jetstream.RawStreamMsg) *jetstream.RawStreamMsg {
	t.Helper()
	m.Sequence, m.Time = 0, time.Time{}
	id, ofCloudEvent := m.Header.Get(jetstream.MsgIDHeader), m.Header.Get("ce-id")
	if ofCloudEvent == "" { // the forwarder's
		return m
	}
	if want := ofCloudEvent + "/" + m.Header.Get("ce-type"); id != want {
		t.Errorf("the message's id is %q, want %q", id, want)
	}
	if _, err := time.Parse(time.RFC3339Nano, m.Header.Get("ce-time")); err != nil {
		t.Error(err)
	}
	for _, name := range []string{jetstream.MsgIDHeader, "ce-id", "ce-time"} {
		m.Header.Set(name, "")
	}
	return m
}

func TestEventThatTheStreamLacksIsAnError(t *testing.T) {
	t.Parallel()
	_, err := rival.OnStream(t.Context(), 2, func(s *rival.Stream) (time.Duration, error) {
		return s.PublishAsync(t.Context(), rival.Uniform(1).Orders())
	})
	const want = "1 events were published, 2 were pending"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one that says: %s", err, want)
	}
}

func TestRefusalOfTheStreamIsAnError(t *testing.T) {
	t.Parallel()
	const n, room = 2000, 60 // several batches are refused
	for _, c := range streamers {
		t.Run(c.Name(), func(t *testing.T) {
			t.Parallel()
			db := backlog(t, c, n)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err := rival.OnStream(ctx, room, func(s *rival.Stream) (time.Duration, error) {
				limit(t, s, room)
				return rival.DrainTo(ctx, c, db, n, s)
			})
			if err == nil || !strings.Contains(err.Error(), "maximum messages exceeded") {
				t.Errorf("error %v, want the stream's refusal", err)
			}
		})
	}
}

// limit makes a stream refuse more than a number of messages.
func limit(t *testing.T, s *rival.Stream, messages int64) {
	t.Helper()
	config := s.CachedInfo().Config
	config.MaxMsgs, config.Discard = messages, jetstream.DiscardNew
	if err := s.Reconfigure(t.Context(), config); err != nil {
		t.Fatal(err)
	}
}
