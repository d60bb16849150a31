package storage

import (
	"context"
	"errors"
	"time"
)

// Store is the outbox in a database, as the relay needs it. All methods may be called concurrently,
// and return soon after ctx ends. An implementation embeds BaseStore.
type Store interface {
	// Join registers a relay, whose lease lasts for Lease from now on. Its id must be a new one.
	Join(context.Context, JoinParams) (JoinResult, error)
	// Renew is the relay's heartbeat: its lease lasts for Lease from now on. If the lease has
	// ended, Renew returns ErrLeaseLost and changes nothing.
	Renew(context.Context, RenewParams) (RenewResult, error)
	// Check identifies the state of the database, or returns ErrLeaseLost if the relay is not
	// registered. The relay calls it ten times a second, to notice when the database has lost
	// transactions in a crash or failover, since what it holds in memory may be wrong then.
	Check(context.Context, CheckParams) (CheckResult, error)
	// Take gives the relay shards whose owner has left or has lost its lease. It also returns
	// shards that the relay already owns, but that are missing in Held because a response was lost.
	// It does not wait for locks.
	Take(context.Context, TakeParams) (TakeResult, error)
	// Release gives shards back, for any relay to take. Shards that the relay no longer owns are
	// not changed.
	Release(context.Context, ReleaseParams) (ReleaseResult, error)
	// Leave releases everything and ends the relay's registration.
	Leave(context.Context, LeaveParams) (LeaveResult, error)

	// Read returns for each shard the events after a position, by ascending Seq, without the known
	// ones. All are read from one snapshot.
	Read(context.Context, ReadParams) (ReadResult, error)
	// ReadDue returns events that have failed before and whose next attempt is due.
	ReadDue(context.Context, ReadDueParams) (ReadDueResult, error)
	// ReadKeys returns the events of each key, by ascending Seq.
	ReadKeys(context.Context, ReadKeysParams) (ReadKeysResult, error)
	// Watermark returns the Seq up to which every event is either visible or will never be. The
	// relay calls it after a Read, before it uses the result.
	Watermark(context.Context, WatermarkParams) (WatermarkResult, error)

	// Settle records the results of events, either all of them or none.
	Settle(context.Context, SettleParams) (SettleResult, error)

	// Maintain deletes events whose retention has ended, and creates partitions that will be
	// needed. The relay calls it about once a minute; of concurrent calls only one does the work.
	Maintain(context.Context, MaintainParams) (MaintainResult, error)
	// CountBacklog counts pending events and dead letters. The relay calls it every ten seconds.
	CountBacklog(context.Context, CountBacklogParams) (CountBacklogResult, error)

	// Doorbell returns the doorbell that enqueues on this store ring. It is always the same one.
	Doorbell() *Doorbell
	// Listen calls Ring when other processes call Notify, until ctx ends or notifications no longer
	// arrive. Polling continues while it fails.
	Listen(context.Context, ListenParams) (ListenResult, error)
	// Notify wakes the listeners of all processes. It must not be called within a business
	// transaction.
	Notify(context.Context, NotifyParams) (NotifyResult, error)
	// Reset closes all connections, those in use once they are released. The relay calls it after a
	// connection did not answer in time: after a failover the others may be broken, too.
	Reset(context.Context, ResetParams) (ResetResult, error)

	mustEmbedBaseStore()
}

// ErrLeaseLost says that a relay is no longer registered: its lease ended before it was renewed, or
// the database has lost the registration, as in a crash. Another relay may own its shards.
var ErrLeaseLost = errors.New("outbox: lease lost")

// ErrUnusable is wrapped by errors that retrying cannot mend: for instance, the tables belong to
// another service, or the server lacks a feature that the store needs. The relay's Run returns such
// an error.
var ErrUnusable = errors.New("the database cannot be used")

// Ownership is a shard that a relay owns.
type Ownership struct {
	Shard int32
	Fence int64 // the fencing token: it grows by one whenever the shard changes hands
	// Suspect says that the previous owner's lease ended before it gave the shard back: an event
	// may have ended its process.
	Suspect bool
}

// JoinParams are the parameters of Store.Join.
type JoinParams struct {
	Relay ID
	Lease time.Duration
}

// JoinResult is the result of Store.Join.
type JoinResult struct{}

// RenewParams are the parameters of Store.Renew.
type RenewParams struct {
	Relay ID
	Lease time.Duration
}

// RenewResult is how many there are to share the work.
type RenewResult struct {
	Relays int // alive, this one included
	Shards int
}

// CheckParams are the parameters of Store.Check.
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
	Held  []Ownership // the shards that the relay knows it owns
}

// TakeResult has the shards that the relay owns in addition to Held.
type TakeResult struct{ Owned []Ownership }

// ReleaseParams are the parameters of Store.Release.
type ReleaseParams struct {
	Relay ID
	Owned []Ownership
}

// ReleaseResult is the result of Store.Release.
type ReleaseResult struct{}

// LeaveParams are the parameters of Store.Leave.
type LeaveParams struct{ Relay ID }

// LeaveResult is the result of Store.Leave.
type LeaveResult struct{}

// MaintainParams are the parameters of Store.Maintain.
type MaintainParams struct{}

// MaintainResult is the result of Store.Maintain.
type MaintainResult struct{}

// CountBacklogParams are the parameters of Store.CountBacklog.
type CountBacklogParams struct {
	Limit int // the largest number that is counted to, so that counting stays cheap
}

// CountBacklogResult is the result of Store.CountBacklog, for the whole outbox.
type CountBacklogResult struct {
	Pending     int           // committed and not yet published, or Limit if there are more
	Oldest      time.Duration // how long ago the oldest of those counted was enqueued
	DeadLetters int           // or Limit if there are more
}

// ListenParams has functions that Store.Listen calls.
type ListenParams struct {
	Ready func() // whenever it was proved that notifications arrive
	Ring  func() // whenever another process may have committed events
}

// ListenResult is the result of Store.Listen.
type ListenResult struct{}

// NotifyParams are the parameters of Store.Notify.
type NotifyParams struct{}

// NotifyResult is the result of Store.Notify.
type NotifyResult struct{}

// ResetParams are the parameters of Store.Reset.
type ResetParams struct{}

// ResetResult is the result of Store.Reset.
type ResetResult struct{}
