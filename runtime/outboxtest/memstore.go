// Package outboxtest helps to test what is built on outbox: a store in memory, publishers that record and fail, and the
// suites that every Store and every Publisher has to pass.
package outboxtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// MemStore is an outbox in memory, with transactions that become visible when they commit and numbers that are given out
// before: what a relay has to cope with in a database. Its clock is the process's, so that it works in a testing/synctest bubble.
type MemStore struct {
	source string
	bell   outbox.Doorbell

	mu     sync.Mutex
	table  int64
	seq    int64
	xid    uint64
	open   map[uint64]bool
	shards []memShard
	relays map[outbox.ID]time.Time // until when they are alive
	rows   map[int64]*memRow       // by seq
	order  [][]int64               // committed seqs of each shard, ascending
	dead   []outbox.DeadLetter
}

type memShard struct {
	owner outbox.ID
	fence int64
}

type memRow struct {
	outbox.Message
	due       time.Time // zero: it has not failed
	lastError string
}

var _ outbox.Store = (*MemStore)(nil)

// NewMemStore returns an empty outbox of the given number of shards.
func NewMemStore(shards int) *MemStore {
	return &MemStore{
		source: "outboxtest", xid: 1, open: map[uint64]bool{}, shards: make([]memShard, shards),
		relays: map[outbox.ID]time.Time{}, rows: map[int64]*memRow{},
		order: make([][]int64, shards),
	}
}

// MemTx is a transaction on a MemStore.
type MemTx struct {
	store *MemStore
	xid   uint64
	began time.Time
	rows  []*memRow
	ended bool
}

// Begin begins a transaction.
func (s *MemStore) Begin() *MemTx {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.xid++
	s.open[s.xid] = true
	return &MemTx{store: s, xid: s.xid, began: time.Now()}
}

var errEnded = errors.New("outboxtest: the transaction has ended")

// Enqueue records events as part of the transaction.
func (tx *MemTx) Enqueue(ctx context.Context, events []outbox.Event, opts ...outbox.EnqueueOption) ([]outbox.ID, error) {
	if tx.ended {
		return nil, errEnded
	}
	s := tx.store
	rows, err := outbox.Encode(ctx, len(s.shards), events, opts...)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rows {
		s.seq++
		m := outbox.Message{
			ID: r.ID, Type: r.Type, Version: r.Version, Source: s.source, Topic: r.Topic, Key: r.Key,
			Payload: r.Payload, ContentType: r.ContentType, CausationID: r.CausationID, CreatedAt: tx.began,
			Position: outbox.Position{Shard: r.Shard, Seq: s.seq, Event: r.ID},
		}
		if r.Headers != nil {
			if err := json.Unmarshal(r.Headers, &m.Headers); err != nil {
				return nil, err
			}
		}
		tx.rows = append(tx.rows, &memRow{Message: m})
	}
	s.bell.Ring()
	return outbox.IDs(rows), nil
}

// Commit makes the transaction's events visible.
func (tx *MemTx) Commit() error { return tx.end(tx.rows) }

// Rollback drops the transaction's events.
func (tx *MemTx) Rollback() error { return tx.end(nil) }

func (tx *MemTx) end(rows []*memRow) error {
	s := tx.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if tx.ended {
		return errEnded
	}
	tx.ended = true
	delete(s.open, tx.xid)
	for _, r := range rows {
		s.insert(r)
	}
	return nil
}

func (s *MemStore) insert(r *memRow) {
	s.rows[r.Seq] = r
	at, _ := slices.BinarySearch(s.order[r.Shard], r.Seq)
	s.order[r.Shard] = slices.Insert(s.order[r.Shard], at, r.Seq)
}

func (s *MemStore) remove(p outbox.Position) {
	delete(s.rows, p.Seq)
	if at, found := slices.BinarySearch(s.order[p.Shard], p.Seq); found {
		s.order[p.Shard] = slices.Delete(s.order[p.Shard], at, at+1)
	}
}

// Pending returns the events that are committed and not yet published, in no particular order.
func (s *MemStore) Pending() []outbox.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []outbox.Message
	for _, r := range s.rows {
		out = append(out, s.message(r))
	}
	return out
}

// Backlog implements outbox.BacklogCounter.
func (s *MemStore) Backlog(context.Context) (outbox.Backlog, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := outbox.Backlog{Pending: len(s.rows), Dead: len(s.dead)}
	for _, r := range s.rows {
		b.Oldest = max(b.Oldest, time.Since(r.CreatedAt))
	}
	return b, nil
}

// message is what a read returns of a row.
func (s *MemStore) message(r *memRow) outbox.Message {
	m := r.Message
	m.Waiting = r.due.After(time.Now())
	return m
}

// Doorbell implements outbox.Store.
func (s *MemStore) Doorbell() *outbox.Doorbell { return &s.bell }

// Maintain implements outbox.Store. There is nothing to do.
func (s *MemStore) Maintain(context.Context) error { return nil }

// Join implements outbox.Membership.
func (s *MemStore) Join(_ context.Context, relay outbox.ID, lease time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, found := s.relays[relay]; found {
		return errors.New("outboxtest: the relay has joined before")
	}
	s.relays[relay] = time.Now().Add(lease)
	return nil
}

// Renew implements outbox.Membership.
func (s *MemStore) Renew(_ context.Context, relay outbox.ID, lease time.Duration) (outbox.Census, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.relays[relay].After(now) {
		return outbox.Census{}, outbox.ErrLeaseLost
	}
	s.relays[relay] = now.Add(lease)
	for id, until := range s.relays {
		if !until.After(now) {
			delete(s.relays, id)
		}
	}
	return outbox.Census{Relays: len(s.relays), Shards: len(s.shards)}, nil
}

// Check implements outbox.Membership.
func (s *MemStore) Check(_ context.Context, relay outbox.ID) (outbox.Incarnation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, found := s.relays[relay]; !found {
		return outbox.Incarnation{}, outbox.ErrLeaseLost
	}
	return outbox.Incarnation{Table: s.table, LastSeq: s.seq}, nil
}

// Take implements outbox.Membership.
func (s *MemStore) Take(_ context.Context, relay outbox.ID, n int, held []outbox.Ownership) ([]outbox.Ownership, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var taken []outbox.Ownership
	for i := range s.shards {
		shard := &s.shards[i]
		holds := slices.ContainsFunc(held, func(o outbox.Ownership) bool { return o.Shard == int32(i) })
		alive := shard.owner != relay && s.relays[shard.owner].After(time.Now())
		if len(taken) == n || holds || alive {
			continue
		}
		suspect := shard.owner != uuid.Nil && shard.owner != relay
		shard.owner, shard.fence = relay, shard.fence+1
		taken = append(taken, outbox.Ownership{Shard: int32(i), Fence: shard.fence, Suspect: suspect})
	}
	return taken, nil
}

// Release implements outbox.Membership.
func (s *MemStore) Release(_ context.Context, relay outbox.ID, shards []outbox.Ownership) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range shards {
		if s.owns(relay, o) {
			s.shards[o.Shard].owner = uuid.Nil
		}
	}
	return nil
}

// Leave implements outbox.Membership.
func (s *MemStore) Leave(_ context.Context, relay outbox.ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.shards {
		if s.shards[i].owner == relay {
			s.shards[i].owner = uuid.Nil
		}
	}
	delete(s.relays, relay)
	return nil
}

func (s *MemStore) owns(relay outbox.ID, o outbox.Ownership) bool {
	return s.shards[o.Shard].owner == relay && s.shards[o.Shard].fence == o.Fence
}

// Read implements outbox.Reader.
func (s *MemStore) Read(_ context.Context, reads []outbox.ShardRead, known []int64, maxBytes int) ([]outbox.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	except := set(known)
	var out []outbox.Message
	for _, read := range reads {
		n, bytes := 0, 0
		at, _ := slices.BinarySearch(s.order[read.Shard], read.After+1)
		for _, seq := range s.order[read.Shard][at:] {
			if except[seq] {
				continue
			}
			if n == read.Limit || bytes >= maxBytes {
				break
			}
			m := s.message(s.rows[seq])
			out, n, bytes = append(out, m), n+1, bytes+len(m.Payload)
		}
	}
	return out, nil
}

func set(seqs []int64) map[int64]bool {
	m := make(map[int64]bool, len(seqs))
	for _, seq := range seqs {
		m[seq] = true
	}
	return m
}

// ReadDue implements outbox.Reader.
func (s *MemStore) ReadDue(_ context.Context, reads []outbox.ShardRead, known []int64) ([]outbox.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	except := set(known)
	var out []outbox.Message
	for _, read := range reads {
		var due []*memRow
		for _, seq := range s.order[read.Shard] {
			r := s.rows[seq]
			if seq <= read.After && !except[seq] && !r.due.IsZero() && !r.due.After(time.Now()) {
				due = append(due, r)
			}
		}
		slices.SortStableFunc(due, func(a, b *memRow) int { return a.due.Compare(b.due) })
		for _, r := range due[:min(len(due), read.Limit)] {
			out = append(out, s.message(r))
		}
	}
	return out, nil
}

// ReadKeys implements outbox.Reader.
func (s *MemStore) ReadKeys(_ context.Context, keys []outbox.KeyRead) ([]outbox.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []outbox.Message
	for _, k := range keys {
		n := 0
		for _, seq := range s.order[k.Shard] {
			r := s.rows[seq]
			if n < k.Limit && seq >= k.From && seq <= k.To && r.Key == k.Key {
				out, n = append(out, s.message(r)), n+1
			}
		}
	}
	return out, nil
}

// Mark implements outbox.Reader.
func (s *MemStore) Mark(context.Context) (outbox.Mark, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.xid++
	return outbox.Mark{Seq: s.seq, Xid: s.xid}, nil
}

// Snapshot implements outbox.Reader.
func (s *MemStore) Snapshot(context.Context) (outbox.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	snapshot := outbox.Snapshot{Xmin: s.xid + 1, Xmax: s.xid + 1}
	for xid := range s.open {
		snapshot.InProgress = append(snapshot.InProgress, xid)
		snapshot.Xmin = min(snapshot.Xmin, xid)
	}
	slices.Sort(snapshot.InProgress)
	return snapshot, nil
}

// settle calls f for every row that exists, and stands in a shard that is the relay's.
func (s *MemStore) settle(relay outbox.ID, owned []outbox.Ownership, at []outbox.Position, f func(i int, r *memRow)) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := map[int32]bool{}
	for _, o := range owned {
		mine[o.Shard] = s.owns(relay, o)
	}
	n := 0
	for i, p := range at {
		r := s.rows[p.Seq]
		if r != nil && mine[p.Shard] && (p.Event == uuid.Nil || p.Event == r.ID) {
			f(i, r)
			n++
		}
	}
	return n
}

// Retry implements outbox.Settler.
func (s *MemStore) Retry(_ context.Context, relay outbox.ID, owned []outbox.Ownership, retries []outbox.Retry) (int, error) {
	at := make([]outbox.Position, len(retries))
	for i, r := range retries {
		at[i] = r.Position
	}
	return s.settle(relay, owned, at, func(i int, r *memRow) {
		r.Attempts, r.Begun, r.lastError = retries[i].Attempts, retries[i].Begun, retries[i].Error
		r.due = time.Now().Add(retries[i].Delay)
	}), nil
}

// Published implements outbox.Settler.
func (s *MemStore) Published(_ context.Context, relay outbox.ID, owned []outbox.Ownership, published []outbox.Position) (int, error) {
	return s.settle(relay, owned, published, func(_ int, r *memRow) { s.remove(r.Position) }), nil
}

// Bury implements outbox.Settler.
func (s *MemStore) Bury(_ context.Context, relay outbox.ID, owned []outbox.Ownership, deaths []outbox.Death) (int, error) {
	at := make([]outbox.Position, len(deaths))
	for i, d := range deaths {
		at[i] = d.Position
	}
	return s.settle(relay, owned, at, func(i int, r *memRow) {
		m := r.Message
		m.Attempts, m.Begun = deaths[i].Attempts, false
		s.dead = append(s.dead, outbox.DeadLetter{Message: m, Error: deaths[i].Error, DiedAt: time.Now()})
		s.remove(r.Position)
	}), nil
}

// ListDead implements outbox.DeadLetters.
func (s *MemStore) ListDead(_ context.Context, limit int) ([]outbox.DeadLetter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.dead[:min(limit, len(s.dead))]), nil
}

// Replay implements outbox.DeadLetters.
func (s *MemStore) Replay(_ context.Context, ids ...outbox.ID) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dead := s.takeDead(ids)
	slices.SortFunc(dead, func(a, b outbox.DeadLetter) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, d := range dead {
		s.seq++
		m := d.Message
		m.Seq, m.Attempts = s.seq, 0
		s.insert(&memRow{Message: m})
	}
	s.bell.Ring()
	return len(dead), nil
}

// Discard implements outbox.DeadLetters.
func (s *MemStore) Discard(_ context.Context, ids ...outbox.ID) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.takeDead(ids)), nil
}

func (s *MemStore) takeDead(ids []outbox.ID) (taken []outbox.DeadLetter) {
	s.dead = slices.DeleteFunc(s.dead, func(d outbox.DeadLetter) bool {
		found := slices.Contains(ids, d.ID)
		if found {
			taken = append(taken, d)
		}
		return found
	})
	return taken
}
