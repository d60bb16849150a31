package storage

import (
	"context"
	"errors"
)

// ErrUnsupported is returned by defaults of BaseStore: the store cannot do it, and the relay works
// without it.
var ErrUnsupported = errors.New("outbox: the store does not support it")

// BaseStore is embedded by every Store and Operator. It has a default for what an implementation
// may lack, which is also how a method that is added to the contract later reaches stores that were
// generated before.
type BaseStore struct{}

func (BaseStore) mustEmbedBaseStore() {}

var _ interface{ mustEmbedBaseStore() } = BaseStore{}

// Watermark returns one that never moves: reads begin where a shard begins, which is right for
// every database, and slow for a long backlog.
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
