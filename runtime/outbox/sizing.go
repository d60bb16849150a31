package outbox

// sizing makes requests smaller that fail for their size: a statement_timeout or a slow line lets a large one never
// through. Each failure halves them, and they grow again after a number of successes.
type sizing struct {
	halvings  int
	successes int // in a row, at this size
	requests  int // which shards' turn it is
}

const (
	maxHalvings     = 20 // down to a single event
	growthSuccesses = 16
)

// ended notes how a request ended.
func (z *sizing) ended(err error) {
	z.requests++
	switch {
	case err != nil:
		z.halvings, z.successes = min(z.halvings+1, maxHalvings), 0
	case z.halvings > 0:
		if z.successes++; z.successes >= growthSuccesses {
			z.halvings, z.successes = z.halvings-1, 0
		}
	}
}

// share returns what is left of n, at least one.
func (z *sizing) share(n int) int { return max(1, n>>z.halvings) }

// shrink makes a plan smaller: first in events and bytes of each shard, then also in shards, in turn.
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
		n := max(1, len(p.shards)>>over)
		from := z.requests * n % len(p.shards)
		to := min(from+n, len(p.shards))
		p.shards, p.reads, p.due = p.shards[from:to], p.reads[from:to], p.due[from:to]
	}
}

// shrinkKeys makes a read of keys smaller; the others' turn comes later.
func shrinkKeys(z *sizing, lanes []*lane, reads []KeyRead) ([]*lane, []KeyRead) {
	if z.halvings == 0 || len(reads) == 0 {
		return lanes, reads
	}
	n := z.share(len(reads))
	for i := range reads[:n] {
		reads[i].Limit = z.share(reads[i].Limit)
	}
	return lanes[:n], reads[:n]
}
