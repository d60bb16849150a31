package ledger

// Sizing makes requests smaller that fail for their size: a statement_timeout or a slow line lets a
// large one never through. Each failure halves them, and they grow again after a number of
// successes: the larger a number, the more often growing has ended in a failure.
type Sizing struct {
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

// Ended notes how a request ended.
func (z *Sizing) Ended(err error) {
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

// Share returns what is left of n, at least one.
func (z *Sizing) Share(n int) int { return max(1, n>>z.halvings) }

// Plan makes a plan smaller: first in events and bytes of each shard, then also in shards, in turn.
func (z *Sizing) Plan(p Plan) Plan {
	if z.halvings == 0 {
		return p
	}
	p.Bytes = z.Share(p.Bytes)
	largest := 0
	for i := range p.Reads {
		largest = max(largest, p.Reads[i].Limit)
		p.Reads[i].Limit = z.Share(p.Reads[i].Limit)
		p.Due[i].Limit = z.Share(p.Due[i].Limit)
	}
	halvings := 0
	for largest>>halvings > 1 {
		halvings++
	}
	if over := z.halvings - halvings; over > 0 {
		from, to := z.turn(len(p.shards), len(p.shards)>>over)
		p.shards, p.Reads, p.Due = p.shards[from:to], p.Reads[from:to], p.Due[from:to]
	}
	return p
}

// Resumption makes a read of keys smaller; the others' turn comes later.
func (z *Sizing) Resumption(r Resumption) Resumption {
	if z.halvings == 0 || len(r.Keys) == 0 {
		return r
	}
	from, to := z.turn(len(r.Keys), z.Share(len(r.Keys)))
	r.lanes, r.Keys = r.lanes[from:to], r.Keys[from:to]
	for i := range r.Keys {
		r.Keys[i].Limit = z.Share(r.Keys[i].Limit)
	}
	return r
}

// turn returns whose turn it is of total, up to n of them and at least one. One request after the
// other, it is everybody's turn.
func (z *Sizing) turn(total, n int) (from, to int) {
	n = max(1, n)
	from = z.requests * n % total
	return from, min(from+n, total)
}
