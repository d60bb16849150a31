package failures_test

import (
	"encoding/json"
	"testing"

	"github.com/outboxgen/outboxgen/examples/conformance/plain/events/outboxdb"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// TestAReadTouchesNothingButWhatItReturns checks the plans of a planner with correct statistics,
// and of one whose statistics say that the outbox is empty.
func TestAReadTouchesNothingButWhatItReturns(t *testing.T) {
	t.Parallel()
	for name, believe := range map[string]func(*world){
		"analysed": func(w *world) { w.backlog(20_000, 100) },
		"vacuumed while empty": func(w *world) {
			w.exec(`ALTER TABLE outbox SET (autovacuum_enabled = off)`)
			w.backlog(20_000, 100)
			w.exec(`DELETE FROM outbox`)
			w.exec(`VACUUM outbox`)
			w.insert(20_000, 100)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			believe(w)
			// Each event costs one page, and so does each level of an index.
			if cost, most := w.readCost(everyShard(20, 1<<20)), 16*(20+5); cost > most {
				t.Errorf("a read of 20 events of each of 16 shards touches %d pages, want %d at "+
					"most", cost, most)
			}
			empty := storage.ReadParams{
				Shards: []storage.ShardRead{{Shard: 99, Limit: 1000}}, MaxBytes: 1 << 20,
			}
			if cost, most := w.readCost(empty), 10; cost > most {
				t.Errorf("a read of an empty shard touches %d pages, want %d at most", cost, most)
			}
		})
	}
}

// everyShard returns the parameters of a read of up to limit events of every shard, from its
// beginning.
func everyShard(limit, maxBytes int) storage.ReadParams {
	p := storage.ReadParams{MaxBytes: maxBytes}
	for shard := range int32(shards) {
		p.Shards = append(p.Shards, storage.ShardRead{Shard: shard, Limit: limit})
	}
	return p
}

// readCost returns how many pages the server touches for a read with the store's settings.
func (w *world) readCost(p storage.ReadParams) int {
	w.Helper()
	var shards, limits []int32
	var afters []int64
	for _, r := range p.Shards {
		shards, afters = append(shards, r.Shard), append(afters, r.After)
		limits = append(limits, int32(r.Limit))
	}
	// The parameters in the order of outboxdb.ReadShards.
	return w.pages(outboxdb.ReadShards, int64(p.MaxBytes), shards, afters, limits, p.Known)
}

// pages returns how many pages the server touches for a query that reads, as the store sends it.
func (w *world) pages(query string, args ...any) int {
	w.Helper()
	tx := w.begin()
	_, err := tx.Exec(w.Context(), outboxdb.PlanRead)
	w.must(err)
	var text []byte
	explain := `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ` + query
	w.must(tx.QueryRow(w.Context(), explain, args...).Scan(&text))
	w.must(tx.Rollback(w.Context()))
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	w.must(json.Unmarshal(text, &plans))
	if len(plans) != 1 {
		w.Fatalf("no plan in %s", text)
	}
	return plans[0].Plan.Hit + plans[0].Plan.Read
}

// TestDeadLettersOfOneTypeAreFoundAmongMany reads what it lists, and not what an operator does not
// ask for.
func TestDeadLettersOfOneTypeAreFoundAmongMany(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`INSERT INTO outbox_dead (id, shard, seq, type, version, topic, key, payload,
			content_type, attempts, last_error, created_at, died_at)
		SELECT gen_random_uuid(), 0, n,
			CASE WHEN n % 1000 = 0 THEN 'seldom.died' ELSE 'often.died' END, 1, 't', '',
			'x', 'text/plain', 1, 'why', now(), now() - n * interval '1 second'
		FROM generate_series(1, 20000) AS n`)
	for _, believe := range []string{`SELECT 1`, `ANALYZE outbox_dead`} {
		w.exec(believe)
		if pages := w.pages(outboxdb.ListDeadOfType, "seldom.died", 10); pages > 50 {
			t.Errorf("10 of 20 among 20000 touch %d pages, want 50 at most", pages)
		}
	}
}
