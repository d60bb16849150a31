package storage

import (
	"context"
	"errors"
)

// ErrUnsupported is returned by methods that a store does not implement. The relay works without
// them.
var ErrUnsupported = errors.New("outbox: the store does not support it")

// BaseStore must be embedded by every Store and Operator. It has defaults for optional methods, and
// for methods that are added to the contract after a store was generated.
type BaseStore struct{}

func (BaseStore) mustEmbedBaseStore() {}

var _ interface{ mustEmbedBaseStore() } = BaseStore{}

// Watermark returns 0: every read begins at the start of a shard, which is correct for every
// database, but slow if the backlog is long.
func (BaseStore) Watermark(context.Context, WatermarkParams) (WatermarkResult, error) {
	return WatermarkResult{}, nil
}

// Maintain does nothing.
func (BaseStore) Maintain(context.Context, MaintainParams) (MaintainResult, error) {
	return MaintainResult{}, nil
}

// CountBacklog returns ErrUnsupported.
func (BaseStore) CountBacklog(context.Context, CountBacklogParams) (CountBacklogResult, error) {
	return CountBacklogResult{}, ErrUnsupported
}

// Listen returns ErrUnsupported: events of other processes are found by polling.
func (BaseStore) Listen(context.Context, ListenParams) (ListenResult, error) {
	return ListenResult{}, ErrUnsupported
}

// Notify returns ErrUnsupported.
func (BaseStore) Notify(context.Context, NotifyParams) (NotifyResult, error) {
	return NotifyResult{}, ErrUnsupported
}

// Reset does nothing.
func (BaseStore) Reset(context.Context, ResetParams) (ResetResult, error) {
	return ResetResult{}, nil
}
