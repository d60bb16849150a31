package ledger

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

var errTooLarge = errors.New("too large")

// TestSizesComeBackAfterSuccess has requests fail, and then succeed for long.
func TestSizesComeBackAfterSuccess(t *testing.T) {
	var z Sizing
	for range 2 * maxHalvings {
		z.Ended(errTooLarge)
	}
	if n := z.Share(1 << 12); n != 1 {
		t.Fatalf("after %d failures: got %d events, want 1", 2*maxHalvings, n)
	}
	for n := 1; z.Share(1<<12) < 1<<12; n++ {
		z.Ended(nil)
		if n > maxHalvings*growthSuccesses {
			t.Fatalf("after %d successes: got %d events", n, z.Share(1<<12))
		}
	}
}

// TestSizesGrowMoreAndMoreSeldomWhenTheyFail has requests of more than 10 events fail for ever.
func TestSizesGrowMoreAndMoreSeldomWhenTheyFail(t *testing.T) {
	var z Sizing
	failures := 0
	for range 100_000 {
		var err error
		if z.Share(1000) > 10 {
			err = errTooLarge
			failures++
		}
		z.Ended(err)
	}
	if failures > 200 {
		t.Errorf("%d of 100,000 requests failed for their size", failures)
	}
}

// TestEveryShardHasItsTurn makes requests fail as long as they ask for too much, and for ever while
// they ask one shard: whichever that is, all others are asked again and again.
func TestEveryShardHasItsTurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shards := rapid.IntRange(1, 80).Draw(t, "shards")
		limit := rapid.IntRange(1, 300).Draw(t, "limit")
		most := rapid.IntRange(1, 400).Draw(t, "most")
		broken := rapid.IntRange(-1, shards-1).Draw(t, "broken")
		var z Sizing
		asked := make([]int, shards)
		for n := range 40 * (shards + maxHalvings) {
			p := Plan{Bytes: 1 << 20}
			for i := range shards {
				p.shards = append(p.shards, &shard{Ownership: storage.Ownership{Shard: int32(i)}})
				p.Reads = append(p.Reads, storage.ShardRead{Shard: int32(i), Limit: limit})
				p.Due = append(p.Due, storage.ShardRead{Shard: int32(i), Limit: idleLimit})
			}
			p = z.Plan(p)
			if len(p.Reads) == 0 || len(p.Reads) != len(p.shards) || len(p.Due) != len(p.shards) {
				t.Fatalf("%d shards, %d reads, %d due", len(p.shards), len(p.Reads), len(p.Due))
			}
			var err error
			total := 0
			for i, r := range p.Reads {
				if r.Limit < 1 || p.shards[i].Shard != r.Shard {
					t.Fatalf("got %+v for shard %d", r, p.shards[i].Shard)
				}
				total += r.Limit
				if total > most || int(r.Shard) == broken {
					err = errTooLarge
				}
			}
			for _, r := range p.Reads {
				if err == nil && n > 20*maxHalvings {
					asked[r.Shard]++
				}
			}
			z.Ended(err)
		}
		for i, n := range asked {
			if n == 0 && i != broken {
				t.Fatalf("shard %d is never read: %v", i, asked)
			}
		}
	})
}

// TestEveryKeyHasItsTurn does the same with keys that are resumed.
func TestEveryKeyHasItsTurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.IntRange(1, resumeKeys).Draw(t, "keys")
		var z Sizing
		asked := map[int32]int{}
		for range maxHalvings + 2*keys {
			r := Resumption{Keys: make([]storage.KeyRead, keys), lanes: make([]*lane, keys)}
			for i := range r.Keys {
				r.Keys[i] = storage.KeyRead{Shard: int32(i), Limit: resumeLimit}
			}
			r = z.Resumption(r)
			if len(r.lanes) != len(r.Keys) || len(r.Keys) == 0 {
				t.Fatalf("%d lanes, %d reads", len(r.lanes), len(r.Keys))
			}
			for _, key := range r.Keys {
				asked[key.Shard]++
			}
			z.Ended(errTooLarge)
		}
		for i := range keys {
			if asked[int32(i)] < 2 {
				t.Fatalf("key %d had its turn %d times", i, asked[int32(i)])
			}
		}
	})
}
