package failures_test

import (
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// TestTheBacklogIsCounted checks the number of pending events and the age of the oldest, while
// published events are retained beside them.
func TestTheBacklogIsCounted(t *testing.T) {
	t.Parallel()
	w, store := retaining(t)
	w.equal("nothing", w.countBacklog(store), storage.CountBacklogResult{})
	w.keptSince(100, "1 hour")
	w.keepEvents(7)
	// A replayed event keeps its time of creation, although it now stands behind newer ones.
	w.exec(`UPDATE messaging.app_outbox
		SET created_at = now() - interval '3 hours', available_at = now() + interval '1 hour'
		WHERE seq = (SELECT max(seq) FROM messaging.app_outbox)`)
	w.exec(`INSERT INTO messaging.app_outbox_dead (id, shard, seq, type, version, topic, key,
		payload, content_type, attempts, last_error, created_at)
		SELECT gen_random_uuid(), 0, n, 'thing.happened', 1, 'things', '', '{}', '', 12, 'no', now()
		FROM generate_series(1, 3) AS n`)
	b := w.countBacklog(store)
	w.equal("pending and dead", []int{b.Pending, b.DeadLetters}, []int{7, 3})
	w.equal("hours", b.Oldest.Truncate(time.Hour), 3*time.Hour)
}

// TestCountingALargeBacklogIsCheap shows that counting stops at the limit and reads no published
// event.
func TestCountingALargeBacklogIsCheap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.insert(outbox.BacklogLimit+20_000, 10)
	w.exec(`UPDATE outbox SET created_at = now() - interval '2 hours' WHERE seq = 1`)
	b := w.countBacklog(w.store)
	w.equal("pending", b.Pending, outbox.BacklogLimit)
	w.equal("hours", b.Oldest.Truncate(time.Hour), 2*time.Hour)
	w.insertDead(outbox.BacklogLimit + 1)
	w.equal("dead", w.countBacklog(w.store).DeadLetters, outbox.BacklogLimit)
}

func (w *world) insertDead(n int) {
	w.Helper()
	w.exec(`INSERT INTO outbox_dead (id, shard, seq, type, version, topic, key, payload,
		content_type, attempts, last_error, created_at)
		SELECT md5('dead ' || i)::uuid, i % 16, i, 'thing.happened', 1, 'things', '',
		'{}', 'application/json', 12, 'no', now()
		FROM generate_series(1, $1::integer) AS i`, n)
}
