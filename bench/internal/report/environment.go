package report

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
)

// Environment is what the figures depend on, and what is needed to measure them again. It contains
// no name of a host, user or path.
type Environment struct {
	Machine, Versions, Settings []Fact
}

// Fact is a named property: "memory" is "23.5 GiB".
type Fact struct{ Name, Value string }

// durability are the settings on which the cost of a commit depends most. The lab sets safe values;
// the report has what the server says.
var durability = []string{"fsync", "full_page_writes", "synchronous_commit", "wal_sync_method"}

// probes is how many commits are measured to find out how long one takes.
const probes = 50

// Describe returns the properties of the machine, the program and the lab's server.
func Describe(ctx context.Context, l *lab.Lab) (Environment, error) {
	db, err := l.Database(ctx, 1)
	if err != nil {
		return Environment{}, err
	}
	defer db.Drop()
	s, err := inspect(ctx, db)
	if err != nil {
		return Environment{}, fmt.Errorf("bench: describe the server: %w", err)
	}
	commit := Fact{
		"a commit takes",
		fmt.Sprintf("%s ms, the median of %d", Number(measure.Milliseconds(s.commit)), probes),
	}
	build, _ := debug.ReadBuildInfo()
	return Environment{
		Machine:  append(machine(os.DirFS("/"), s.directory), commit),
		Versions: versions(build, s.version),
		Settings: s.settings,
	}, nil
}

// server is what a server says about itself.
type server struct {
	version   string
	settings  []Fact
	directory string // of its data; "" unless it runs on this machine
	commit    time.Duration
}

func inspect(ctx context.Context, db *lab.Database) (s server, err error) {
	// A server in a container has an address of its own, and directories that are not this
	// machine's.
	const whatAndWhere = `SELECT current_setting('server_version'), coalesce((
		SELECT setting FROM pg_settings WHERE name = 'data_directory' AND
		 coalesce(inet_server_addr() <<= '127.0.0.0/8', true)), '')`
	if err := db.QueryRow(ctx, whatAndWhere).Scan(&s.version, &s.directory); err != nil {
		return server{}, err
	}
	names := append(slices.Collect(maps.Keys(lab.Settings)), durability...)
	rows, err := db.Query(ctx,
		"SELECT name, current_setting(name) FROM unnest($1::text[]) AS name ORDER BY name", names)
	if err != nil {
		return server{}, err
	}
	if s.settings, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Fact]); err != nil {
		return server{}, err
	}
	s.commit, err = commitTime(ctx, db)
	return s, err
}

// commitTime returns the median time of a transaction that has next to nothing to commit. That is
// what durability costs on this machine, in which disks differ most.
func commitTime(ctx context.Context, db *lab.Database) (time.Duration, error) {
	times := make([]time.Duration, probes)
	for i := range times {
		began := time.Now()
		if _, err := db.Exec(ctx, "SELECT pg_logical_emit_message(true, 'bench', '')"); err != nil {
			return 0, err
		}
		times[i] = time.Since(began)
	}
	return measure.Percentile(times, 0.5), nil
}
