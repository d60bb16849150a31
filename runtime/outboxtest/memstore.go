// Package outboxtest helps to test code that publishes events: a store in memory, and publishers
// that record and fail. The suites that every store, publisher and subscriber has to pass are in
// its package conformance.
package outboxtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage/xid"
)

// MemStore is an outbox in memory. As in a database, events get their seqs when they are enqueued,
// and become visible when their transaction commits. It uses the process's clock, so that it works
// in a testing/synctest bubble. It is safe for concurrent use.
type MemStore struct {
	storage.BaseStore
	source   string
	doorbell storage.Doorbell

	mu     sync.Mutex
	seq    int64
	xid    uint64
	open   map[uint64]bool
	shards []memShard
	relays map[outbox.ID]time.Time // the end of each lease
	rows   map[int64]*memRow       // by seq
	order  [][]int64               // committed seqs of each shard, ascending
	dead   []storage.DeadLetter
}

type memShard struct {
	owner outbox.ID
	fence int64
}

type memRow struct {
	storage.Item
	due       time.Time // of the next attempt; zero if none has failed
	lastError string
	replays   int32
}

var (
	_ storage.Store    = (*MemStore)(nil)
	_ storage.Operator = (*MemStore)(nil)
)

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
func (tx *MemTx) Enqueue(
	ctx context.Context, events []outbox.Event, opts ...outbox.EnqueueOption,
) ([]outbox.ID, error) {
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
			ID: r.ID, Type: r.Type, Version: r.Version, Source: s.source, Topic: r.Topic,
			Key: r.Key, Payload: r.Payload, ContentType: r.ContentType,
			CausationID: r.CausationID, CreatedAt: tx.began,
		}
		if r.Headers != nil {
			if err := json.Unmarshal(r.Headers, &m.Headers); err != nil {
				return nil, err
			}
		}
		at := storage.Position{Shard: r.Shard, Seq: s.seq, Event: r.ID}
		tx.rows = append(tx.rows, &memRow{Item: storage.Item{Message: m, Position: at}})
	}
	s.doorbell.Ring()
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

func (s *MemStore) remove(p storage.Position) {
	delete(s.rows, p.Seq)
	if at, found := slices.BinarySearch(s.order[p.Shard], p.Seq); found {
		s.order[p.Shard] = slices.Delete(s.order[p.Shard], at, at+1)
	}
}

// Pending returns the events that are committed and not yet published, in no particular order.
func (s *MemStore) Pending() []storage.Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []storage.Item
	for _, r := range s.rows {
		out = append(out, r.item())
	}
	return out
}

// CountBacklog implements storage.Store.
func (s *MemStore) CountBacklog(
	_ context.Context, p storage.CountBacklogParams,
) (storage.CountBacklogResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := storage.CountBacklogResult{
		Pending: min(len(s.rows), p.Limit), DeadLetters: min(len(s.dead), p.Limit),
	}
	for _, r := range s.rows {
		b.Oldest = max(b.Oldest, time.Since(r.CreatedAt))
	}
	return b, nil
}

// item returns a row as reads do.
func (r *memRow) item() storage.Item {
	i := r.Item
	i.NotDue = r.due.After(time.Now())
	return i
}

// Doorbell implements storage.Store.
func (s *MemStore) Doorbell() *storage.Doorbell { return &s.doorbell }

// Join implements storage.Store.
func (s *MemStore) Join(_ context.Context, p storage.JoinParams) (storage.JoinResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, found := s.relays[p.Relay]; found {
		return storage.JoinResult{}, errors.New("outboxtest: the relay has joined before")
	}
	s.relays[p.Relay] = time.Now().Add(p.Lease)
	return storage.JoinResult{}, nil
}

// Renew implements storage.Store.
func (s *MemStore) Renew(_ context.Context, p storage.RenewParams) (storage.RenewResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.relays[p.Relay].After(now) {
		return storage.RenewResult{}, storage.ErrLeaseLost
	}
	s.relays[p.Relay] = now.Add(p.Lease)
	for id, until := range s.relays {
		if !until.After(now) {
			delete(s.relays, id)
		}
	}
	return storage.RenewResult{Relays: len(s.relays), Shards: len(s.shards)}, nil
}

// Check implements storage.Store.
func (s *MemStore) Check(_ context.Context, p storage.CheckParams) (storage.CheckResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, found := s.relays[p.Relay]; !found {
		return storage.CheckResult{}, storage.ErrLeaseLost
	}
	return storage.CheckResult{LastSeq: s.seq}, nil
}

// Take implements storage.Store.
func (s *MemStore) Take(_ context.Context, p storage.TakeParams) (storage.TakeResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var taken []storage.Ownership
	for i := range s.shards {
		shard := &s.shards[i]
		holds := slices.ContainsFunc(p.Held,
			func(o storage.Ownership) bool { return o.Shard == int32(i) })
		alive := shard.owner != p.Relay && s.relays[shard.owner].After(time.Now())
		if len(taken) == p.Max || holds || alive {
			continue
		}
		suspect := shard.owner != uuid.Nil && shard.owner != p.Relay
		shard.owner, shard.fence = p.Relay, shard.fence+1
		taken = append(taken,
			storage.Ownership{Shard: int32(i), Fence: shard.fence, Suspect: suspect})
	}
	return storage.TakeResult{Owned: taken}, nil
}

// Release implements storage.Store.
func (s *MemStore) Release(
	_ context.Context, p storage.ReleaseParams,
) (storage.ReleaseResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range p.Owned {
		if s.owns(p.Relay, o) {
			s.shards[o.Shard].owner = uuid.Nil
		}
	}
	return storage.ReleaseResult{}, nil
}

// Leave implements storage.Store.
func (s *MemStore) Leave(_ context.Context, p storage.LeaveParams) (storage.LeaveResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.shards {
		if s.shards[i].owner == p.Relay {
			s.shards[i].owner = uuid.Nil
		}
	}
	delete(s.relays, p.Relay)
	return storage.LeaveResult{}, nil
}

func (s *MemStore) owns(relay storage.ID, o storage.Ownership) bool {
	return s.shards[o.Shard].owner == relay && s.shards[o.Shard].fence == o.Fence
}

// Read implements storage.Store.
func (s *MemStore) Read(_ context.Context, p storage.ReadParams) (storage.ReadResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	except := set(p.Known)
	var out []storage.Item
	for _, read := range p.Shards {
		n, bytes := 0, 0
		at, _ := slices.BinarySearch(s.order[read.Shard], read.After+1)
		for _, seq := range s.order[read.Shard][at:] {
			if except[seq] {
				continue
			}
			if n == read.Limit || bytes >= p.MaxBytes {
				break
			}
			i := s.rows[seq].item()
			out, n, bytes = append(out, i), n+1, bytes+len(i.Payload)
		}
	}
	return storage.ReadResult{Items: out}, nil
}

func set(seqs []int64) map[int64]bool {
	m := make(map[int64]bool, len(seqs))
	for _, seq := range seqs {
		m[seq] = true
	}
	return m
}

// ReadDue implements storage.Store.
func (s *MemStore) ReadDue(
	_ context.Context, p storage.ReadDueParams,
) (storage.ReadDueResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	except := set(p.Known)
	var out []storage.Item
	for _, read := range p.Shards {
		var due []*memRow
		for _, seq := range s.order[read.Shard] {
			r := s.rows[seq]
			if seq <= read.After && !except[seq] && !r.due.IsZero() && !r.due.After(time.Now()) {
				due = append(due, r)
			}
		}
		slices.SortStableFunc(due, func(a, b *memRow) int { return a.due.Compare(b.due) })
		for _, r := range due[:min(len(due), read.Limit)] {
			out = append(out, r.item())
		}
	}
	return storage.ReadDueResult{Items: out}, nil
}

// ReadKeys implements storage.Store.
func (s *MemStore) ReadKeys(
	_ context.Context, p storage.ReadKeysParams,
) (storage.ReadKeysResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []storage.Item
	for _, k := range p.Keys {
		n := 0
		for _, seq := range s.order[k.Shard] {
			r := s.rows[seq]
			if n < k.Limit && seq >= k.From && seq <= k.To && r.Key == k.Key {
				out, n = append(out, r.item()), n+1
			}
		}
	}
	return storage.ReadKeysResult{Items: out}, nil
}

// Watermark implements storage.Store.
func (s *MemStore) Watermark(
	ctx context.Context, p storage.WatermarkParams,
) (storage.WatermarkResult, error) {
	return xid.Watermark(ctx, memTransactions{s}, p)
}

type memTransactions struct{ *MemStore }

func (s memTransactions) Mark(context.Context) (xid.Mark, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.xid++
	return xid.Mark{Seq: s.seq, Xid: s.xid}, nil
}

func (s memTransactions) Snapshot(context.Context) (xid.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return xid.Snapshot{
		Xmax: s.xid + 1, InProgress: slices.Sorted(maps.Keys(s.open)),
	}, nil
}

// Settle implements storage.Store.
func (s *MemStore) Settle(
	_ context.Context, p storage.SettleParams,
) (result storage.SettleResult, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := map[int32]bool{}
	for _, o := range p.Owned {
		mine[o.Shard] = s.owns(p.Relay, o)
	}
	settled := func(at storage.Position) *memRow {
		r := s.rows[at.Seq]
		if r == nil || !mine[at.Shard] || at.Event != uuid.Nil && at.Event != r.ID {
			return nil
		}
		return r
	}
	for _, at := range p.Published {
		if r := settled(at); r != nil {
			s.remove(r.Position)
			result.Published++
		}
	}
	for _, retry := range p.Retries {
		if r := settled(retry.Position); r != nil {
			r.Attempts, r.Interrupted = retry.Attempts, retry.Interrupted
			r.due, r.lastError = time.Now().Add(retry.Delay), retry.Error
			result.Retries++
		}
	}
	for _, d := range p.DeadLetters {
		if r := settled(d.Position); r != nil {
			s.dead = append(s.dead, storage.DeadLetter{
				Message: r.Message, Position: r.Position, Attempts: d.Attempts, Error: d.Error,
				DiedAt: time.Now(), Replays: r.replays,
			})
			s.remove(r.Position)
			result.DeadLetters++
		}
	}
	return result, nil
}

// ListDeadLetters implements storage.Operator.
func (s *MemStore) ListDeadLetters(
	_ context.Context, p storage.ListDeadLettersParams,
) (storage.ListDeadLettersResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dead := slices.DeleteFunc(slices.Clone(s.dead), func(d storage.DeadLetter) bool {
		return p.Type != "" && d.Type != p.Type
	})
	return storage.ListDeadLettersResult{DeadLetters: dead[:min(p.Limit, len(dead))]}, nil
}

// ReplayDeadLetters implements storage.Operator.
func (s *MemStore) ReplayDeadLetters(
	_ context.Context, p storage.ReplayDeadLettersParams,
) (storage.ReplayDeadLettersResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dead := s.takeDead(p.IDs)
	slices.SortFunc(dead, func(a, b storage.DeadLetter) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, d := range dead {
		s.seq++
		at := storage.Position{Shard: d.Shard, Seq: s.seq, Event: d.ID}
		s.insert(&memRow{
			Item: storage.Item{Message: d.Message, Position: at}, replays: d.Replays + 1,
		})
	}
	s.doorbell.Ring()
	return storage.ReplayDeadLettersResult{Replayed: len(dead)}, nil
}

// DiscardDeadLetters implements storage.Operator.
func (s *MemStore) DiscardDeadLetters(
	_ context.Context, p storage.DiscardDeadLettersParams,
) (storage.DiscardDeadLettersResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return storage.DiscardDeadLettersResult{Discarded: len(s.takeDead(p.IDs))}, nil
}

func (s *MemStore) takeDead(ids []storage.ID) (taken []storage.DeadLetter) {
	s.dead = slices.DeleteFunc(s.dead, func(d storage.DeadLetter) bool {
		found := slices.Contains(ids, d.ID)
		if found {
			taken = append(taken, d)
		}
		return found
	})
	return taken
}
