package ledger

// Sizing makes requests smaller after failures, since a large request may never succeed: it may
// exceed a statement_timeout, or the network may be slow. Each failure halves the size. After a
// number of successes it doubles again; that number grows each time a larger size has failed.
type Sizing struct {
	halvings  int
	successes int  // in a row, at this size
	grown     bool // the size was reached by doubling
	failed    int  // how many times a doubled size has failed
	requests  int  // number of requests, which selects the shards whose turn it is
}

const (
	maxHalvings      = 20 // down to a single event
	growthSuccesses  = 16
	maxGrowthsFailed = 6 // about a thousand successes
)

// Ended notes the result of a request.
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

// Share returns n, reduced to the present size, but at least 1.
func (z *Sizing) Share(n int) int { return max(1, n>>z.halvings) }

// Plan reduces a plan: first the events and bytes of each shard, then also the number of shards,
// which take turns.
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

// Resumption reduces a read of keys, which take turns.
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

// turn selects at least one and up to n of total items, others with each request, so that all get
// their turn.
func (z *Sizing) turn(total, n int) (from, to int) {
	n = max(1, n)
	from = z.requests * n % total
	return from, min(from+n, total)
}
