package storage

import (
	"context"
	"errors"
	"time"
)

// Store is the outbox in a database, as the relay needs it. All methods may be called concurrently,
// and return soon after ctx ends. An implementation embeds BaseStore.
type Store interface {
	// Join registers a relay, alive for Lease from now on. Its id must never have been used before.
	Join(context.Context, JoinParams) (JoinResult, error)
	// Renew makes the relay count as alive for Lease from now on. If its lease has ended, it
	// returns ErrLeaseLost and changes nothing.
	Renew(context.Context, RenewParams) (RenewResult, error)
	// Check says which outbox the relay works on, or returns ErrLeaseLost if it is not registered.
	// The relay asks ten times a second: after a crash of the database, what it remembers may be
	// wrong.
	Check(context.Context, CheckParams) (CheckResult, error)
	// Take gives the relay shards that have no living owner, or that are its own and missing in
	// Held because a response was lost. It waits for nobody.
	Take(context.Context, TakeParams) (TakeResult, error)
	// Release gives shards back, for any other relay to take. Those that are no longer the relay's
	// are left alone.
	Release(context.Context, ReleaseParams) (ReleaseResult, error)
	// Leave releases everything and ends the relay's registration.
	Leave(context.Context, LeaveParams) (LeaveResult, error)

	// Read returns for each shard the events behind a position, by ascending Seq, without the known
	// ones. All come from one snapshot.
	Read(context.Context, ReadParams) (ReadResult, error)
	// ReadDue returns events that have failed before and whose next attempt is due.
	ReadDue(context.Context, ReadDueParams) (ReadDueResult, error)
	// ReadKeys returns the events of each key, by ascending Seq.
	ReadKeys(context.Context, ReadKeysParams) (ReadKeysResult, error)
	// Watermark says up to which Seq every event is decided: visible, or never to come. The relay
	// asks between a Read and the use of what that returned.
	Watermark(context.Context, WatermarkParams) (WatermarkResult, error)

	// Settle records what became of events, all of it or nothing.
	Settle(context.Context, SettleParams) (SettleResult, error)

	// Maintain removes what is kept no longer, and prepares room for what comes. The relay calls it
	// about once a minute; of several calls at the same time one does the work.
	Maintain(context.Context, MaintainParams) (MaintainResult, error)
	// CountBacklog counts what waits in the outbox. The relay asks every ten seconds, for its
	// Stats.
	CountBacklog(context.Context, CountBacklogParams) (CountBacklogResult, error)

	// Doorbell is rung by enqueues on this store. It is always the same one.
	Doorbell() *Doorbell
	// Listen hears of commits in other processes until ctx ends, or until notifications arrive no
	// longer. While it fails, polling carries on.
	Listen(context.Context, ListenParams) (ListenResult, error)
	// Notify makes the listeners of all processes ring. It must not be called within a business
	// transaction.
	Notify(context.Context, NotifyParams) (NotifyResult, error)
	// Reset closes all connections, those in use once they are released. The relay calls it after a
	// connection did not answer in time: after a failover others may be as dead, and not know it.
	Reset(context.Context, ResetParams) (ResetResult, error)

	mustEmbedBaseStore()
}

// ErrLeaseLost says that a relay is not registered any more: its lease had ended before it was
// renewed, or the database has gone back in time and forgotten it. Its shards may be another's.
var ErrLeaseLost = errors.New("outbox: lease lost")

// ErrUnusable is wrapped by errors that no retry mends: the tables are another service's, say, or
// the server lacks what the store needs. The relay's Run returns such an error.
var ErrUnusable = errors.New("the database cannot be used")

// Ownership is a shard in the hands of a relay.
type Ownership struct {
	Shard int32
	Fence int64 // the fencing token: it grows by one whenever the shard changes hands
	// Suspect says that the previous owner's lease ended before it gave the shard back: an event
	// may have ended its process.
	Suspect bool
}

// JoinParams are those of Store.Join.
type JoinParams struct {
	Relay ID
	Lease time.Duration
}

// JoinResult is that of Store.Join.
type JoinResult struct{}

// RenewParams are those of Store.Renew.
type RenewParams struct {
	Relay ID
	Lease time.Duration
}

// RenewResult is how many there are to share the work.
type RenewResult struct {
	Relays int // alive, this one included
	Shards int
}

// CheckParams are those of Store.Check.
type CheckParams struct{ Relay ID }

// CheckResult says which outbox it is. If the database has gone back in time, or a backup was
// restored, a later result has another Incarnation or a lower LastSeq.
type CheckResult struct {
	Incarnation string // changes when the table or its sequence is dropped, truncated or rewritten
	LastSeq     int64  // the last Seq that was assigned, committed or not
}

// TakeParams ask for up to Max shards.
type TakeParams struct {
	Relay ID
	Max   int
	Held  []Ownership // what the relay knows to be its own
}

// TakeResult is what the relay owns in addition from now on.
type TakeResult struct{ Owned []Ownership }

// ReleaseParams are those of Store.Release.
type ReleaseParams struct {
	Relay ID
	Owned []Ownership
}

// ReleaseResult is that of Store.Release.
type ReleaseResult struct{}

// LeaveParams are those of Store.Leave.
type LeaveParams struct{ Relay ID }

// LeaveResult is that of Store.Leave.
type LeaveResult struct{}

// MaintainParams are those of Store.Maintain.
type MaintainParams struct{}

// MaintainResult is that of Store.Maintain.
type MaintainResult struct{}

// CountBacklogParams are those of Store.CountBacklog.
type CountBacklogParams struct {
	Limit int // the largest number that is counted to, so that counting stays cheap
}

// CountBacklogResult is what stands in an outbox, whichever relay is to publish it.
type CountBacklogResult struct {
	Pending     int           // committed and not yet published, or Limit if there are more
	Oldest      time.Duration // how long ago the oldest of those counted was enqueued
	DeadLetters int           // or Limit if there are more
}

// ListenParams are what Store.Listen calls.
type ListenParams struct {
	Ready func() // whenever it was proved that notifications arrive
	Ring  func() // whenever another process may have committed events
}

// ListenResult is that of Store.Listen.
type ListenResult struct{}

// NotifyParams are those of Store.Notify.
type NotifyParams struct{}

// NotifyResult is that of Store.Notify.
type NotifyResult struct{}

// ResetParams are those of Store.Reset.
type ResetParams struct{}

// ResetResult is that of Store.Reset.
type ResetResult struct{}
