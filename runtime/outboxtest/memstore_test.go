package outboxtest_test

import (
	"context"
	"testing"

	"github.com/outboxgen/outboxgen/runtime/outboxtest"
	"github.com/outboxgen/outboxgen/runtime/outboxtest/conformance"
)

type memTx struct{ *outboxtest.MemTx }

func (tx memTx) Commit(context.Context) error   { return tx.MemTx.Commit() }
func (tx memTx) Rollback(context.Context) error { return tx.MemTx.Rollback() }

func TestMemStore(t *testing.T) {
	conformance.TestStore(t, func(*testing.T) conformance.Harness {
		store := outboxtest.NewMemStore(conformance.Shards)
		return conformance.Harness{
			Store: store,
			Begin: func(context.Context) (conformance.Tx, error) {
				return memTx{store.Begin()},
					nil
			},
		}
	})
}
