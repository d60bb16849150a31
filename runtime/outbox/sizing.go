package outbox

import "github.com/outboxgen/outboxgen/runtime/outbox/storage"

// sizing makes requests smaller that fail for their size: a statement_timeout or a slow line lets a
// large one never through. Each failure halves them, and they grow again after a number of
// successes: the larger a number, the more often growing has ended in a failure.
type sizing struct {
	halvings  int
	successes int  // in a row, at this size
	grown     bool // to this size
	failed    int  // how often requests have grown too large
	requests  int  // which shards' turn it is
}

const (
	maxHalvings      = 20 // down to a single event
	growthSuccesses  = 16
	maxGrowthsFailed = 6 // about a thousand successes
)

// ended notes how a request ended.
func (z *sizing) ended(err error) {
	z.requests++
	if err != nil {
		if z.grown {
			z.failed = min(z.failed+1, maxGrowthsFailed)
		}
		z.halvings, z.successes, z.grown = min(z.halvings+1, maxHalvings), 0, false
		return
	}
	z.successes++
	if z.successes < growthSuccesses<<z.failed {
		return
	}
	z.successes = 0
	if z.grown = z.halvings > 0; z.grown {
		z.halvings--
	} else {
		z.failed = 0
	}
}

// share returns what is left of n, at least one.
func (z *sizing) share(n int) int { return max(1, n>>z.halvings) }

// shrink makes a plan smaller: first in events and bytes of each shard, then also in shards, in
// turn.
func (p *plan) shrink(z *sizing) {
	if z.halvings == 0 {
		return
	}
	p.bytes = z.share(p.bytes)
	largest := 0
	for i := range p.reads {
		largest = max(largest, p.reads[i].Limit)
		p.reads[i].Limit = z.share(p.reads[i].Limit)
		p.due[i].Limit = z.share(p.due[i].Limit)
	}
	halvings := 0
	for largest>>halvings > 1 {
		halvings++
	}
	if over := z.halvings - halvings; over > 0 {
		from, to := z.turn(len(p.shards), len(p.shards)>>over)
		p.shards, p.reads, p.due = p.shards[from:to], p.reads[from:to], p.due[from:to]
	}
}

// turn returns whose turn it is of total, up to n of them and at least one. One request after the
// other, it is everybody's turn.
func (z *sizing) turn(total, n int) (from, to int) {
	n = max(1, n)
	from = z.requests * n % total
	return from, min(from+n, total)
}

// shrinkKeys makes a read of keys smaller; the others' turn comes later.
func shrinkKeys(z *sizing, lanes []*lane, reads []storage.KeyRead) ([]*lane, []storage.KeyRead) {
	if z.halvings == 0 || len(reads) == 0 {
		return lanes, reads
	}
	from, to := z.turn(len(reads), z.share(len(reads)))
	lanes, reads = lanes[from:to], reads[from:to]
	for i := range reads {
		reads[i].Limit = z.share(reads[i].Limit)
	}
	return lanes, reads
}
