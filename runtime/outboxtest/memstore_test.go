package outboxtest_test

import (
	"context"
	"testing"

	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

type memTx struct{ *outboxtest.MemTx }

func (tx memTx) Commit(context.Context) error   { return tx.MemTx.Commit() }
func (tx memTx) Rollback(context.Context) error { return tx.MemTx.Rollback() }

func TestMemStore(t *testing.T) {
	outboxtest.TestStore(t, func(*testing.T) outboxtest.Harness {
		store := outboxtest.NewMemStore(outboxtest.Shards)
		return outboxtest.Harness{
			Store: store,
			Begin: func(context.Context) (outboxtest.Tx, error) { return memTx{store.Begin()}, nil },
		}
	})
}
