package failures_test

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// TestBehindATransactionPooler runs everything through PgBouncer, which may give each transaction
// another connection, in every mode of pgx that needs no named statements.
func TestBehindATransactionPooler(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(strings.ReplaceAll(mode.String(), " ", "_"), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.pool = connect(t, pgbouncer(t, w.url), func(c *pgxpool.Config) {
				c.ConnConfig.DefaultQueryExecMode = mode
			})
			w.store = events.NewStore(w.pool)
			w.wholePath()
		})
	}
}

// wholePath takes events through every query: enqueue, relay with retries and dead letters, replay,
// inbox, duplicate, maintenance.
func (w *world) wholePath() {
	w.Helper()
	recording := &outboxtest.RecordingPublisher{}
	broken := true
	var refused atomic.Bool
	faulty := &outboxtest.FaultyPublisher{Next: recording,
		Decide: func(m *outbox.Message) outboxtest.Fault {
			switch {
			case m.Key == "refused" && broken:
				return outboxtest.RefuseForGood
			case m.Key == "shaky" && !refused.Swap(true):
				return outboxtest.Refuse
			}
			return outboxtest.Deliver
		}}
	w.queue(thing("batch", 1))
	ids := w.enqueue(thing("refused", 1), thing("shaky", 1), thing("steady", 1),
		events.StrayHappenedV1{Entity: "no key", N: 7})
	w.relayOnce(faulty, 1, 1)
	w.relayUntil(faulty, func() bool { return w.pending() == 0 })
	w.equal("published", len(recording.Messages()), 4)
	broken = false
	w.equal("replayed", w.replay(ids[0]), 1)
	w.relayUntil(faulty, func() bool { return w.pending() == 0 })
	messages := recording.Messages()
	w.equal("published", len(messages), 5)
	w.equal("the replayed", messages[4].ID, ids[0])
	w.applyOnce(&messages[4])
	w.relayUntil(faulty, func() bool { return w.pending() == 0 })
	w.enqueue(manyThings(outbox.CopyThreshold)...)
	w.relayUntil(faulty, func() bool { return w.pending() == 0 })
	w.equal("published", len(recording.Messages()), 6+outbox.CopyThreshold)
	w.maintain(w.store)
	w.notify()
}

// queue enqueues an event in a batch.
func (w *world) queue(e events.Event) {
	w.Helper()
	tx := w.begin()
	var batch pgx.Batch
	_, err := w.store.QueueThingHappenedV1(w.Context(), &batch, e.(events.ThingHappenedV1),
		outbox.WithHeader("tenant", "größe"))
	w.must(err)
	w.must(tx.SendBatch(w.Context(), &batch).Close())
	w.must(tx.Commit(w.Context()))
}

func (w *world) relayOnce(p outbox.Publisher, dead, retried int64) {
	w.Helper()
	relay, err := outbox.NewRelay(w.store, p, quick())
	w.must(err)
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	s, err := relay.RunOnce(ctx)
	w.must(err)
	w.equal("dead and retried", fmt.Sprint(s.Dead, " ", s.Retried), fmt.Sprint(dead, " ", retried))
}

func (w *world) relayUntil(p outbox.Publisher, condition func() bool) {
	w.Helper()
	_, stop := w.run(w.store, p, quick())
	defer stop()
	w.eventually("the relay has done its work", condition)
}

// applyOnce has a consumer handle an event, which causes another one, and then handle it again.
func (w *world) applyOnce(m *outbox.Message) {
	w.Helper()
	consumer := events.NewWitness(w.store, emitting{})
	for _, want := range []inbox.Outcome{inbox.OutcomeApplied, inbox.OutcomeDuplicate} {
		outcome, err := consumer.Handle(w.Context(), m)
		w.must(err)
		w.equal("outcome", outcome, want)
	}
	w.equal("events caused",
		query[int](w, `SELECT count(*) FROM outbox WHERE causation_id = $1`, m.ID.String()), 1)
}

// emitting is a consumer that emits one event for each that it handles.
type emitting struct{}

func (emitting) HandleThingHappenedV1(
	ctx context.Context, tx events.WitnessTx, e events.ThingHappenedV1,
) error {
	_, err := tx.EnqueueStrayHappenedV1(ctx, events.StrayHappenedV1(e))
	return err
}

// pgbouncer starts PgBouncer in transaction mode in front of the database at direct, and returns
// the URL to use instead.
func pgbouncer(t *testing.T, direct string) string {
	t.Helper()
	path := pgbouncerPath(t)
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 { // another process may take the port first
		port := freePort(t)
		file := filepath.Join(t.TempDir(), "pgbouncer.ini")
		if err := os.WriteFile(file, []byte(pgbouncerConfig(u, port)), 0o600); err != nil {
			t.Fatal(err)
		}
		pooled := *u
		pooled.Host = net.JoinHostPort("127.0.0.1", port)
		if exited := startPgbouncer(t, path, file); answers(t, pooled.String(), exited) {
			return pooled.String()
		}
	}
	t.Fatal("pgbouncer does not start")
	return ""
}

// pgbouncerPath returns the program's path. If there is none, it skips the test, unless CI requires
// one.
func pgbouncerPath(t *testing.T) string {
	t.Helper()
	// /usr/sbin is not on everybody's PATH.
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if ci := os.Getenv("CI"); ci != "" && ci != "0" && ci != "false" && ci != "no" {
		t.Fatal("pgbouncer is not installed, and CI is set: install the package pgbouncer")
	}
	t.Skip("pgbouncer is not installed")
	return ""
}

func pgbouncerConfig(u *url.URL, port string) string {
	server := fmt.Sprintf("host=%s port=%s dbname=%s user=%s", u.Hostname(),
		cmp.Or(u.Port(), "5432"), u.Path[1:], u.User.Username())
	if password, ok := u.User.Password(); ok {
		server += " password='" + strings.ReplaceAll(password, "'", "''") + "'"
	}
	return "[databases]\n" + u.Path[1:] + " = " + server + `
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ` + port + `
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 8
max_client_conn = 200
server_round_robin = 1
`
}

// startPgbouncer starts PgBouncer, which ends with the test or with this process: a shell waits for
// the end of its standard input.
func startPgbouncer(t *testing.T, path, config string) (exited <-chan struct{}) {
	t.Helper()
	args := []string{"-c", `"$@" & read -r _; kill "$!"; wait`, "sh", path, config}
	if os.Geteuid() == 0 { // PgBouncer refuses to run as root
		args = append(args[:4], "-u", "nobody", config)
	}
	cmd := exec.Command("/bin/sh", args...)
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() { defer close(gone); _ = cmd.Wait() }()
	t.Cleanup(func() { _ = lifeline.Close(); <-gone })
	return gone
}

func answers(t *testing.T, url string, exited <-chan struct{}) bool {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		conn, err := pgx.Connect(t.Context(), url)
		if err == nil {
			return conn.Close(t.Context()) == nil
		}
		select {
		case <-exited:
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
	return false
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
