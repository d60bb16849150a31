package upgrade_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	next "github.com/outboxgen/outboxgen/examples/upgrade/events"
	old "github.com/outboxgen/outboxgen/examples/upgrade/release1/events"
	"github.com/outboxgen/outboxgen/internal/testenv/postgresenv"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

const (
	patience = 5 * time.Minute // the time limit of a test that hangs
	before   = 3               // how many migrations release 1 has: version 1 of each feature
)

// world is a database of the test's own, with the stores of two releases.
type world struct {
	*testing.T
	pool *pgxpool.Pool
	old  *old.Store
	next *next.Store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	pool := postgresenv.Open(t)
	return &world{T: t, pool: pool, old: old.NewStore(pool), next: next.NewStore(pool)}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// migrate migrates the database up or down to a migration, as a team that uses goose would do.
func (w *world) migrate(to int64) {
	w.Helper()
	db := stdlib.OpenDBFromPool(w.pool)
	defer func() { _ = db.Close() }()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS("migrations"))
	w.must(err)
	_, err = provider.UpTo(w.Context(), to)
	w.must(err)
	_, err = provider.DownTo(w.Context(), to)
	w.must(err)
}

func (w *world) exec(sql string) {
	w.Helper()
	_, err := w.pool.Exec(w.Context(), sql)
	w.must(err)
}

func (w *world) count(sql string) (n int) {
	w.Helper()
	w.must(w.pool.QueryRow(w.Context(), sql).Scan(&n))
	return n
}

func (w *world) inTx(f func(tx pgx.Tx) error) {
	w.Helper()
	w.must(pgx.BeginFunc(w.Context(), w.pool, f))
}

func (w *world) eventually(what string, condition func() bool) {
	w.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// says fails the test unless an error wraps another one and contains all words.
func (w *world) says(err, wrapped error, words ...string) {
	w.Helper()
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			w.Errorf("got error %v, want %q in it", err, word)
		}
	}
	w.wraps(err, wrapped)
}

// process is a running relay.
type process struct {
	*outbox.Relay
	stop func()
}

func (w *world) run(
	store storage.Store, publisher outbox.Publisher, config outbox.Config,
) *process {
	w.Helper()
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	config.Lease, config.PollInterval = 6*time.Second, 50*time.Millisecond
	relay, err := outbox.NewRelay(store, publisher, config)
	w.must(err)
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { ended <- relay.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Errorf("the relay ended: %v", err)
		}
	})
	w.Cleanup(stop)
	return &process{relay, stop}
}

// logbook is a log that can be read while others write.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
