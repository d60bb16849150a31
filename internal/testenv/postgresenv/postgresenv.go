// Package postgresenv gives tests a real PostgreSQL: one server for a test binary, started when the
// first test asks for it, and one database for each call.
//
// The server is the first of these that works: the one that OUTBOXGEN_TEST_POSTGRES_URL names, a
// container, a private instance of the binaries on this machine, a private instance of what
// scripts/testdeps.sh fetched. Where none works, a test is skipped on a laptop and fails where CI
// is set. Nothing outlives the test binary, however it ends.
package postgresenv

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// cleanupTimeout bounds each step of clearing up after a test.
const cleanupTimeout = 2 * time.Minute

// Open returns a pool on a fresh, empty database of the test's own. The pool is closed and the
// database dropped when the test ends. Tests may call it in parallel, and a test more than once.
func Open(t testing.TB) *pgxpool.Pool {
	t.Helper()
	db := New(t)
	pool, err := pgxpool.New(t.Context(), db.URL)
	if err != nil {
		t.Fatalf("postgresenv: open %s: %v", db.URL, err)
	}
	t.Cleanup(func() { closePool(t, pool) })
	return pool
}

// closePool reports a connection that the test never gave back, instead of waiting for it for ever.
func closePool(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		pool.Close()
	}()
	select {
	case <-closed:
	case <-time.After(cleanupTimeout):
		t.Errorf("postgresenv: the test ended with %d connections of its pool in use: release "+
			"them, close rows, end transactions",
			pool.Stat().AcquiredConns())
	}
}

// New returns a fresh, empty database of the test's own, dropped when the test ends even if
// connections are still open.
func New(t testing.TB) Database {
	t.Helper()
	server := Shared(t)
	db, err := server.CreateDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context is already cancelled here.
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		if err := server.DropDatabase(ctx, db); err != nil {
			t.Error(err)
		}
	})
	return db
}

// Shared returns the server of this test binary and starts it at the first call. It lives until the
// binary ends: do not stop it. A test that wants to stop, or to configure, a server calls [Start].
func Shared(t testing.TB) *Server {
	t.Helper()
	server, err := sharedServer()
	if err != nil {
		giveUp(t, err, isCI(os.Getenv("CI")))
	}
	return server
}

var sharedServer = sync.OnceValues(func() (*Server, error) {
	return Start(context.Background(), Config{})
})

// giveUp skips the test where nothing but the lack of a server is wrong, and nobody promised one.
func giveUp(t testing.TB, err error, ci bool) {
	t.Helper()
	var none *UnavailableError
	if errors.As(err, &none) && !none.Required && !ci {
		t.Skip(err)
	}
	t.Fatal(err)
}

func isCI(value string) bool {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "", "0", "false", "no":
		return false
	}
	return true
}
