// Package postgresenv gives tests a real PostgreSQL: one server for each test binary, started when
// the first test asks for it, and one database for each call.
//
// The server is the first of these that works: the one that OUTBOXGEN_TEST_POSTGRES_URL names, a
// container, a private instance of the binaries on this machine, a private instance of what
// scripts/testdeps.sh fetched. If none works, a test is skipped, or fails if CI is set. Nothing
// outlives the test binary, however it ends.
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

// cleanupTimeout is the time limit of each step of cleaning up after a test.
const cleanupTimeout = 2 * time.Minute

// Open returns a pool on a new, empty database of the test's own. When the test ends, the pool is
// closed and the database dropped. Tests may call it in parallel, and more than once.
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

// closePool closes a pool, and reports connections that the test has not released instead of
// waiting for them for ever.
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

// New returns a new, empty database of the test's own. It is dropped when the test ends, even if
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

// Shared returns the server of this test binary, which it starts at the first call. The server runs
// until the binary ends: do not stop it. A test that wants to stop or configure a server calls
// [Start].
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

// giveUp skips the test if only a server is missing and none is required, and fails it otherwise.
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
