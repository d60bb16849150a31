package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Store is the outbox in a database, as the relay needs it. Generated code implements it on sqlc's queries; the suite
// outboxtest.TestStore says, and checks, what each method promises. All methods may be called concurrently.
//
// Every instant is the database's: durations travel, points in time do not.
type Store interface {
	Membership
	Reader
	Settler
	DeadLetters
	// Doorbell is rung by enqueues in this process. It is always the same one.
	Doorbell() *Doorbell
	// Maintain removes what is kept no longer, and prepares room for what comes. The relay calls it about once a minute;
	// of several calls at the same time one does the work.
	Maintain(ctx context.Context) error
}

// Ownership is a shard in the hands of a relay. The fence grows by one whenever the shard changes hands.
type Ownership struct {
	Shard int32
	Fence int64
	// Suspect says that the previous owner's lease ended before it gave the shard back: an event
	// may have killed its process.
	Suspect bool
}

// Census is how many there are to share the work.
type Census struct {
	Relays int // alive, this one included
	Shards int
}

// ErrLeaseLost says that a relay is not registered any more: its lease had ended before it was
// renewed, or the database has gone back in time and forgotten it. Its shards may be another's.
var ErrLeaseLost = errors.New("outbox: lease lost")

// ErrUnusable is wrapped by errors that no retry mends: the tables are another service's, say, or
// the server lacks what the store needs. Run returns such an error.
var ErrUnusable = errors.New("the database cannot be used")

// Incarnation says which outbox a relay works on. If the database has gone back in time, or a
// backup was restored, one that is asked for later has another Table or a lower LastSeq.
type Incarnation struct {
	// changes when the table or its sequence is replaced: dropped, truncated or rewritten
	Table   int64
	LastSeq int64 // the last seq that was assigned, committed or not
}

// Membership decides which relay owns which shard.
type Membership interface {
	// Join registers a relay, alive for lease from now on. The id must never have been used before.
	Join(ctx context.Context, relay ID, lease time.Duration) error
	// Renew makes the relay count as alive for lease from now on, and forgets relays whose lease has ended.
	// Where this relay's own has ended, it returns ErrLeaseLost and changes nothing.
	Renew(ctx context.Context, relay ID, lease time.Duration) (Census, error)
	// Check returns the outbox's incarnation, or ErrLeaseLost if the relay is not registered. The
	// relay asks ten times a second: after a crash of the database, what it remembers may be wrong.
	Check(ctx context.Context, relay ID) (Incarnation, error)
	// Take gives the relay up to n shards that have no living owner, or that are its own without its knowing: all but those
	// it holds. It waits for nobody.
	Take(ctx context.Context, relay ID, n int, held []Ownership) ([]Ownership, error)
	// Release gives shards back, for any other relay to take. Those that are no longer the relay's are left alone.
	Release(ctx context.Context, relay ID, shards []Ownership) error
	// Leave releases everything and ends the relay's registration.
	Leave(ctx context.Context, relay ID) error
}

// ShardRead asks for what stands in one shard behind a position.
type ShardRead struct {
	Shard int32
	After int64 // exclusive
	Limit int   // events
}

// KeyRead asks for the events of one key between two positions.
type KeyRead struct {
	Shard int32
	Key   string
	From  int64 // inclusive
	To    int64 // inclusive
	Limit int   // events
}

// Snapshot is what a statement of the database can see: transactions from Xmax on, and those in InProgress, had not ended.
type Snapshot struct {
	Xmin, Xmax uint64
	InProgress []uint64 // ascending, Xmin <= x < Xmax
}

// Mark is an upper bound: an event whose Seq is at most Seq was enqueued by a transaction below Xid.
type Mark struct {
	Seq int64
	Xid uint64
}

// Reader reads events without changing them.
type Reader interface {
	// Read returns for each shard the events behind its position by ascending Seq, without the known ones, cut off after Limit
	// events or once a shard's payloads reach maxBytes together (one event at least). All come from one snapshot.
	Read(ctx context.Context, shards []ShardRead, known []int64, maxBytes int) ([]Message, error)
	// ReadDue returns events up to the given positions (After) that have failed before and whose next attempt is due, without
	// the known ones, at most Limit of each shard.
	ReadDue(ctx context.Context, shards []ShardRead, known []int64) ([]Message, error)
	// ReadKeys returns the events of each key by ascending Seq.
	ReadKeys(ctx context.Context, keys []KeyRead) ([]Message, error)
	// Mark returns a bound that covers every event enqueued so far, committed or not.
	Mark(ctx context.Context) (Mark, error)
	// Snapshot returns what can be seen now: no less than any Read that returned before.
	Snapshot(ctx context.Context) (Snapshot, error)
}

// Retry says when an event is tried again.
type Retry struct {
	Position
	Attempts int32 // charged so far
	Begun    bool  // charged before the attempt, whose end is not known
	Delay    time.Duration
	Error    string
}

// Death makes a dead letter of an event.
type Death struct {
	Position
	Attempts int32
	Error    string
}

// Settler records what became of events. Each method names the relay and the fence of every shard concerned, changes
// nothing in a shard that is not the relay's under that fence, and returns how many events it changed.
type Settler interface {
	// Retry records attempts, error and when the next attempt is due. The relay also calls it before an attempt that may
	// end the process, so that the attempt counts in any case.
	Retry(ctx context.Context, relay ID, owned []Ownership, retries []Retry) (int, error)
	// Published removes events from the outbox; where the catalogue asks for retention they remain readable.
	Published(ctx context.Context, relay ID, owned []Ownership, published []Position) (int, error)
	// Bury makes dead letters of events.
	Bury(ctx context.Context, relay ID, owned []Ownership, deaths []Death) (int, error)
}

// DeadLetter is an event that the relay gave up on.
type DeadLetter struct {
	Message
	Error  string
	DiedAt time.Time
}

// Format writes the same for every verb: which event it is, and why it died.
func (d DeadLetter) Format(f fmt.State, verb rune) {
	d.Message.Format(f, verb)
	_, _ = fmt.Fprintf(f, ", dead since %s: %s", d.DiedAt.Format(time.RFC3339), d.Error)
}

// LogValue says which event it is and why it died, and nothing of its payload, key or headers.
func (d DeadLetter) LogValue() slog.Value {
	return slog.GroupValue(append(d.Message.LogValue().Group(),
		slog.String("error", d.Error), slog.Time("died_at", d.DiedAt))...)
}

// DeadLetters is for operators.
type DeadLetters interface {
	// ListDead returns up to limit dead letters, the oldest first.
	ListDead(ctx context.Context, limit int) ([]DeadLetter, error)
	// Replay puts dead letters back into the outbox, behind what is pending there, with their ids and without attempts.
	// It returns how many there were: a fact that was enqueued in several versions has one of each.
	Replay(ctx context.Context, ids ...ID) (int, error)
	// Discard deletes dead letters and returns how many there were.
	Discard(ctx context.Context, ids ...ID) (int, error)
}

// Resetter is a Store that can give up the connections it holds.
type Resetter interface {
	// Reset closes all connections, those in use once they are released. The relay calls it after a
	// connection did not answer in time: after a failover others may be as dead, and not know it.
	Reset()
}

// Listener is a Store that can tell other processes of commits. The relay uses it where a Store implements it; without it, and
// while it fails, polling carries on.
type Listener interface {
	// Listen calls ready whenever it has proved that notifications arrive, and ring whenever
	// another process may have committed events. It returns when ctx ends, or with an error when
	// notifications arrive no longer; a connection that has died silently is noticed within a
	// minute.
	Listen(ctx context.Context, ready, ring func()) error
	// Notify makes the listeners of all processes ring. It must not be called within a business transaction.
	Notify(ctx context.Context) error
}
