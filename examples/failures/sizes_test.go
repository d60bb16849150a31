package failures_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// modest is a store whose reads fail if they ask for more than a few events at once, as they do
// with a short statement_timeout or over a slow line.
type modest struct {
	*outboxtest.MemStore
	most    int
	refused atomic.Int64
}

func (s *modest) check(asked int) error {
	if asked > s.most {
		s.refused.Add(1)
		return fmt.Errorf("%d events are too many", asked)
	}
	return nil
}

func asked(reads []storage.ShardRead) (n int) {
	for _, r := range reads {
		n += r.Limit
	}
	return n
}

func (s *modest) Read(ctx context.Context, p storage.ReadParams) (storage.ReadResult, error) {
	if err := s.check(asked(p.Shards)); err != nil {
		return storage.ReadResult{}, err
	}
	return s.MemStore.Read(ctx, p)
}

func (s *modest) ReadDue(
	ctx context.Context, p storage.ReadDueParams,
) (storage.ReadDueResult, error) {
	if err := s.check(asked(p.Shards)); err != nil {
		return storage.ReadDueResult{}, err
	}
	return s.MemStore.ReadDue(ctx, p)
}

func (s *modest) ReadKeys(
	ctx context.Context, p storage.ReadKeysParams,
) (storage.ReadKeysResult, error) {
	n := 0
	for _, k := range p.Keys {
		n += k.Limit
	}
	if err := s.check(n); err != nil {
		return storage.ReadKeysResult{}, err
	}
	return s.MemStore.ReadKeys(ctx, p)
}

// TestReadsThatFailForTheirSizeAreMadeSmaller has reads fail that ask for more than 3 events of 16
// shards. The first event of each key is refused once, so that the relay has to read due events and
// resumed keys, too.
func TestReadsThatFailForTheirSizeAreMadeSmaller(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		memory, ids := memory(t, things(60, 10)...)
		store := &modest{MemStore: memory, most: 3}
		w := &world{T: t}
		recording := &outboxtest.RecordingPublisher{}
		var refused sync.Map
		c := quick()
		_, stop := w.run(store, &outboxtest.FaultyPublisher{Next: recording,
			Decide: func(m *outbox.Message) outboxtest.Fault {
				if number(m) == 1 {
					if _, before := refused.LoadOrStore(m.ID, true); !before {
						return outboxtest.Refuse
					}
				}
				return outboxtest.Deliver
			}}, c)
		time.Sleep(time.Hour)
		stop()
		w.once(recording.Messages(), len(ids))
		w.orderedFirst(recording.Messages())
		if n := store.refused.Load(); n < 5 || n > 2000 {
			t.Errorf("%d reads were too large, want the few that it takes to find out", n)
		}
	})
}

// TestSettlesThatFailForTheirSizeAreMadeSmaller has a trigger refuse to delete more than ten rows
// in one statement.
func TestSettlesThatFailForTheirSizeAreMadeSmaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`CREATE FUNCTION refuse_many() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF (SELECT count(*) FROM gone) > 10 THEN RAISE EXCEPTION 'too many rows'; END IF;
			RETURN NULL;
		END $$`)
	w.exec(`CREATE TRIGGER refuse_many AFTER DELETE ON outbox REFERENCING OLD TABLE
		AS gone FOR EACH STATEMENT EXECUTE FUNCTION refuse_many()`)
	ids := w.enqueue(manyEntities(1000)...)
	recording := &outboxtest.RecordingPublisher{}
	_, stop := w.run(w.store, recording, unhurried())
	w.eventually("all is settled", func() bool { return w.pending() == 0 })
	stop()
	w.once(recording.Messages(), len(ids))
}

// manyEntities returns n events, each of a key of its own.
func manyEntities(n int) []events.Event {
	list := make([]events.Event, n)
	for i := range list {
		list[i] = thing(fmt.Sprint("key ", i), i)
	}
	return list
}

// TestAnEventThatCannotBeSettledStandsInNoOthersWay has a trigger refuse to delete two rows,
// whichever others are deleted with them.
func TestAnEventThatCannotBeSettledStandsInNoOthersWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
		AS $$ BEGIN RAISE EXCEPTION 'no'; END $$`)
	w.exec(`CREATE TRIGGER refuse BEFORE DELETE
		ON outbox FOR EACH ROW WHEN (OLD.key LIKE 'stuck%') EXECUTE FUNCTION refuse()`)
	recording := &outboxtest.RecordingPublisher{}
	relay, stop := w.run(w.store, recording, unhurried())
	n := 0
	for i := range 5 {
		list := append(manyEntities(400), events.StrayHappenedV1{N: 1})
		if i == 0 {
			list = append([]events.Event{thing("stuck", 1), thing("stuck too", 1)}, list...)
		}
		n += len(w.enqueue(list...))
		w.eventually("all others are settled", func() bool { return w.pending() == 2 })
	}
	w.eventually("what was settled is counted", func() bool {
		return relay.Stats().Published == int64(n-2)
	})
	w.exec(`DROP TRIGGER refuse ON outbox`)
	w.eventually("all is settled", func() bool { return w.pending() == 0 })
	stop()
	w.once(recording.Messages(), n)
}

// TestARelayEndsThoughAnEventCanNeverBeSettled shows that Run returns in time, with an error.
func TestARelayEndsThoughAnEventCanNeverBeSettled(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		memory, _ := memory(t, things(5, 1)...)
		w := &world{T: t}
		store := &failing{MemStore: memory}
		store.set("Settle", errors.New("no"))
		relay, err := outbox.NewRelay(store, &outboxtest.RecordingPublisher{}, quick())
		w.must(err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := relay.Run(ctx); err == nil {
			t.Error("Run says that it has settled what can never be settled")
		}
		w.equal("pending", len(memory.Pending()), 5)
	})
}
