package postgresenv

import (
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func execSQL(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func query[T any](t *testing.T, pool *pgxpool.Pool, sql string) T {
	t.Helper()
	var value T
	if err := pool.QueryRow(t.Context(), sql).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

func TestParallelTestsHaveDatabasesOfTheirOwn(t *testing.T) {
	t.Parallel()
	t.Log(Shared(t).Source)
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			pool := Open(t)
			execSQL(t, pool, "CREATE TABLE t (n int)")
			execSQL(t, pool, fmt.Sprintf("INSERT INTO t VALUES (%d)", i))
			if got := query[int](t, pool, "SELECT sum(n)::int FROM t"); got != i {
				t.Errorf("the table holds %d, want this test's %d alone", got, i)
			}
		})
	}
}

func TestOneTestMayHaveTwoDatabases(t *testing.T) {
	t.Parallel()
	one, two := Open(t), Open(t)
	execSQL(t, one, "CREATE TABLE only_in_one ()")
	if query[bool](t, two, "SELECT to_regclass('only_in_one') IS NOT NULL") {
		t.Error("a table of one database is in the other")
	}
}

func TestDatabaseIsDroppedWhenTheTestEnds(t *testing.T) {
	t.Parallel()
	outer := Open(t)
	var name string
	t.Run("inner", func(t *testing.T) {
		db := New(t)
		name = db.Name
		// The connection stays open on purpose: the drop must not wait for it.
		if _, err := pgx.Connect(t.Context(), db.URL); err != nil {
			t.Fatal(err)
		}
	})
	var exists bool
	const query = "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)"
	if err := outer.QueryRow(t.Context(), query, name).Scan(&exists); err != nil {
		t.Fatal(err)
	}
	if exists {
		t.Errorf("database %s is still there", name)
	}
}

func TestServerIsFastUnlessAskedToBeDurable(t *testing.T) {
	t.Parallel()
	for _, durable := range []bool{false, true} {
		t.Run(fmt.Sprint(durable), func(t *testing.T) {
			t.Parallel()
			pool := openOn(t, startPrivate(t, Config{Durable: durable}))
			want := "off"
			if durable {
				want = "on"
			}
			for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
				if got := query[string](t, pool, "SHOW "+setting); got != want {
					t.Errorf("%s is %s, want %s", setting, got, want)
				}
			}
			if got := query[string](t, pool, "SHOW max_connections"); got != "200" {
				t.Errorf("max_connections is %s, want 200", got)
			}
		})
	}
}

func TestServerHasTheSettingsAskedFor(t *testing.T) {
	t.Parallel()
	pool := openOn(t, startPrivate(t,
		Config{Settings: map[string]string{"work_mem": "3MB", "max_connections": "20"}}))
	for setting, want := range map[string]string{"work_mem": "3MB", "max_connections": "20"} {
		if got := query[string](t, pool, "SHOW "+setting); got != want {
			t.Errorf("%s is %s, want %s", setting, got, want)
		}
	}
}

func TestURLNamesAServerThatIsLeftRunning(t *testing.T) {
	t.Parallel()
	running := startPrivate(t, Config{})
	named, err := connectURL(t.Context(), running.admin.String())
	if err != nil {
		t.Fatal(err)
	}
	pool := openOn(t, named)
	if err := named.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := query[int](t, pool, "SELECT 1"); got != 1 {
		t.Errorf("got %d, want 1", got)
	}
}

// openOn returns a pool on a new database of the given server.
func openOn(t *testing.T, server *Server) *pgxpool.Pool {
	t.Helper()
	db, err := server.CreateDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), db.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// privateInstallations returns the installations on this machine. If there are none, and the tests
// have their server from elsewhere, it skips the test.
func privateInstallations(t *testing.T) []installation {
	t.Helper()
	found := append(systemInstallations(), testdepsInstallations()...)
	if len(found) == 0 {
		source := Shared(t).Source
		if isCI(os.Getenv("CI")) {
			t.Fatalf("no PostgreSQL binaries on this machine, and CI is set: run "+
				"scripts/testdeps.sh pg17; other tests use %s", source)
		}
		t.Skipf("no PostgreSQL binaries on this machine; the tests use %s", source)
	}
	return found
}

// startPrivate starts a private instance, which is stopped when the test ends.
func startPrivate(t *testing.T, cfg Config) *Server {
	t.Helper()
	server, err := startBinaries(t.Context(), cfg, privateInstallations(t), "", "here")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}
