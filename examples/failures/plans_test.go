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
	tx := w.begin()
	_, err := tx.Exec(w.Context(), outboxdb.PlanRead)
	w.must(err)
	var text []byte
	// These are the parameters of outboxdb.ReadShards, in their order.
	w.must(tx.QueryRow(w.Context(), `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+outboxdb.ReadShards,
		int64(p.MaxBytes), shards, afters, limits, p.Known).Scan(&text))
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
