//go:build unix

package chaos_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	outboxnats "github.com/outboxgen/outboxgen/runtime/publish/nats"
)

// The environment variables by which the test's own binary runs in another role.
const (
	envRole     = "CHAOS_ROLE"
	envPostgres = "CHAOS_POSTGRES"
	envNATS     = "CHAOS_NATS"
)

var roles = map[string]func(ctx context.Context, pool *pgxpool.Pool, js jetstream.JetStream) error{
	"relay": relay, "consumer": consumer,
}

func TestMain(m *testing.M) {
	if play, ok := roles[os.Getenv(envRole)]; ok {
		if err := child(play); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child plays a role until its standard input ends, as it does with the test.
func child(play func(context.Context, *pgxpool.Pool, jetstream.JetStream) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	pool, err := pgxpool.New(ctx, os.Getenv(envPostgres))
	if err != nil {
		return err
	}
	defer pool.Close()
	nc, err := nats.Connect(os.Getenv(envNATS), nats.MaxReconnects(-1),
		nats.RetryOnFailedConnect(true), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	return play(ctx, pool, js)
}

const lease = time.Second

func relay(ctx context.Context, pool *pgxpool.Pool, js jetstream.JetStream) error {
	publisher, err := outboxnats.NewPublisher(js, outboxnats.PublisherConfig{})
	if err != nil {
		return err
	}
	r, err := outbox.NewRelay(events.NewStore(pool), publisher, outbox.Config{
		Lease: lease, PublishTimeout: lease / 3, PollInterval: 100 * time.Millisecond,
		MinRetryDelay: 10 * time.Millisecond, MaxRetryDelay: 200 * time.Millisecond,
		MaxAttempts: 100, // on a busy machine, publishes time out, which costs attempts
	})
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

func consumer(ctx context.Context, pool *pgxpool.Pool, js jetstream.JetStream) error {
	c, err := js.Consumer(ctx, stream, durable)
	for err != nil && ctx.Err() == nil { // the broker may be down just now
		wait, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		<-wait.Done()
		cancel()
		c, err = js.Consumer(ctx, stream, durable)
	}
	if ctx.Err() != nil {
		return nil
	}
	witness := events.NewWitness(events.NewStore(pool), effects{})
	s, err := outboxnats.NewSubscriber(c, counting{witness}, outboxnats.SubscriberConfig{
		MinRetryDelay: 20 * time.Millisecond, MaxRetryDelay: 500 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// counting is a handler that writes a line to standard output for each duplicate.
type counting struct{ inbox.Handler }

func (c counting) Handle(ctx context.Context, m *outbox.Message) (inbox.Outcome, error) {
	outcome, err := c.Handler.Handle(ctx, m)
	if outcome == inbox.OutcomeDuplicate {
		fmt.Println(m.ID)
	}
	return outcome, err
}

// effects is the consumer. Only the inbox prevents that an effect happens twice.
type effects struct{}

func (effects) HandleThingHappenedV1(
	ctx context.Context, tx events.WitnessTx, e events.ThingHappenedV1,
) error {
	_, err := tx.Exec(ctx, `INSERT INTO effect (event_id, entity, n) VALUES ($1, $2, $3)`,
		tx.Message.ID, e.Entity, e.N)
	if err != nil {
		return err
	}
	_, err = tx.EnqueueStrayHappenedV1(ctx, events.StrayHappenedV1(e))
	return err
}

// process is one of the test's processes, which is killed and started again.
type process struct {
	role       string
	env        []string
	duplicates *atomic.Int64

	cmd    *exec.Cmd
	stdin  io.Closer
	stderr *bytes.Buffer
	ended  chan struct{} // closed once it has ended and all its output is read
}

func (p *process) start(t *testing.T) {
	t.Helper()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(append(os.Environ(), p.env...), envRole+"="+p.role)
	p.stderr, p.ended = &bytes.Buffer{}, make(chan struct{})
	p.cmd.Stderr = p.stderr
	stdin, err := p.cmd.StdinPipe()
	must(t, err)
	stdout, err := p.cmd.StdoutPipe()
	must(t, err)
	must(t, p.cmd.Start())
	p.stdin = stdin
	go func() {
		defer close(p.ended)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			p.duplicates.Add(1)
		}
		_ = p.cmd.Wait()
	}()
}

// kill ends the process by SIGKILL, and fails the test if the process has panicked or reported a
// data race.
func (p *process) kill(t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
		t.Errorf("a %s ended by itself: %v\n%s", p.role, p.cmd.ProcessState, p.stderr)
		return
	default:
	}
	must(t, p.cmd.Process.Kill())
	p.await(t)
}

// stop ends the process in an orderly way.
func (p *process) stop(t *testing.T) {
	t.Helper()
	_ = p.stdin.Close()
	p.await(t)
	if !p.cmd.ProcessState.Success() {
		t.Errorf("a %s did not end in an orderly way: %v\n%s", p.role, p.cmd.ProcessState, p.stderr)
	}
}

func (p *process) await(t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		t.Errorf("a %s did not end in %v", p.role, patience)
		return
	}
	if log := p.stderr.String(); strings.Contains(log, "DATA RACE") ||
		strings.Contains(log, "panic:") {
		t.Errorf("a %s met this:\n%s", p.role, log)
	}
}

// stall stops the process for longer than its lease.
func (p *process) stall(t *testing.T, resumed *sync.WaitGroup) {
	t.Helper()
	process := p.cmd.Process
	must(t, process.Signal(syscall.SIGSTOP))
	resumed.Go(func() {
		<-time.After(lease + lease/2)
		_ = process.Signal(syscall.SIGCONT) // it may have been killed meanwhile
	})
}
