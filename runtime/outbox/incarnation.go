package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// checkInterval is how often a relay that reads checks whether the database has gone back in time.
const checkInterval = 100 * time.Millisecond

// incarnation watches for a database that has gone back in time.
type incarnation struct {
	*core
	checked time.Time           // time of the last check
	known   storage.CheckResult // its result
}

// check ends the session if the database has lost transactions: a crash undoes settles that had not
// reached the disk, a standby that lags is promoted, a backup is restored. There may then be events
// below the positions from which this session reads, and only a new session would find them.
func (i *incarnation) check(ctx context.Context) error {
	interval := min(checkInterval, i.config.PollInterval)
	if !i.checkNow.Swap(false) && time.Since(i.checked) < interval {
		return nil
	}
	now, err := i.store.Check(ctx, storage.CheckParams{Relay: i.id})
	if err != nil && !errors.Is(err, storage.ErrLeaseLost) {
		return err
	}
	first := i.checked.IsZero()
	i.checked = time.Now()
	same := now.Incarnation == i.known.Incarnation && now.LastSeq >= i.known.LastSeq
	if err == nil && (first || same) {
		i.known = now
		return nil
	}
	if err == nil {
		err = storage.ErrLeaseLost
	}
	err = fmt.Errorf(
		"%w: the database has crashed or gone back in time, or the outbox was replaced", err,
	)
	i.cancelSession(err)
	return err
}
