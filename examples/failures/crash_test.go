package failures_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// The environment variables by which this test's binary runs as a relay in a process of its own.
const (
	envBehaviour = "FAILURES_BEHAVIOUR"
	envDatabase  = "FAILURES_DATABASE"
)

// behaviours are what the relay's publisher does with an event. The event's id has been written to
// standard output before.
var behaviours = map[string]func(ctx context.Context, m *outbox.Message) error{
	"die of the poison": func(_ context.Context, m *outbox.Message) error {
		if m.Key == "poison" {
			return killMyself()
		}
		return nil
	},
	"hang": func(ctx context.Context, _ *outbox.Message) error { <-ctx.Done(); return ctx.Err() },
}

// killMyself ends this process in the way the kernel does when memory is short.
func killMyself() error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	if err := self.Kill(); err != nil {
		return err
	}
	select {}
}

const (
	crashLease    = 5 * time.Second
	crashAttempts = 3
)

func crashing() outbox.Config {
	c := quick()
	c.Lease, c.PublishTimeout, c.MaxAttempts = crashLease, crashLease/5, crashAttempts
	return c
}

func TestMain(m *testing.M) {
	if behave, ok := behaviours[os.Getenv(envBehaviour)]; ok {
		if err := relayProcess(behave); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// relayProcess runs a relay until standard input ends, which it does at the end of the test.
func relayProcess(behave func(context.Context, *outbox.Message) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	pool, err := pgxpool.New(ctx, os.Getenv(envDatabase))
	if err != nil {
		return err
	}
	defer pool.Close()
	relay, err := outbox.NewRelay(events.NewStore(pool),
		publisherFunc(func(ctx context.Context, m *outbox.Message) error {
			fmt.Println(m.ID)
			return behave(ctx, m)
		}), crashing())
	if err != nil {
		return err
	}
	return relay.Run(ctx)
}

// process is a process that runs a relay.
type process struct {
	cmd     *exec.Cmd
	started chan string   // the events whose publish it started
	ended   chan struct{} // closed when the process has ended
}

func (w *world) startProcess(behaviour string) *process {
	w.Helper()
	p := &process{
		cmd: exec.Command(os.Args[0]), started: make(chan string, 1000), ended: make(chan struct{}),
	}
	p.cmd.Env = append(os.Environ(), envBehaviour+"="+behaviour, envDatabase+"="+w.url)
	p.cmd.Stderr = os.Stderr
	stdin, err := p.cmd.StdinPipe()
	w.must(err)
	stdout, err := p.cmd.StdoutPipe()
	w.must(err)
	w.must(p.cmd.Start())
	go func() {
		defer close(p.ended)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			p.started <- lines.Text()
		}
		_ = p.cmd.Wait()
	}()
	w.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		_ = stdin.Close()
	})
	return p
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// TestAnEventThatKillsTheProcessBecomesADeadLetter loses one process for each attempt, and then
// publishes all other events.
func TestAnEventThatKillsTheProcessBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	list := []events.Event{thing("poison", 1)}
	for n := range 10 {
		list = append(list, thing(fmt.Sprint("bystander ", n), 1),
			events.StrayHappenedV1{N: int64(n)})
	}
	ids := w.enqueue(list...)
	dead := func() int { return query[int](w, `SELECT count(*) FROM outbox_dead`) }
	deaths := 0
	for ; dead() == 0 && deaths < 3*crashAttempts; deaths++ {
		p := w.startProcess("die of the poison")
		w.eventually("the process dies, or the event is dead", func() bool {
			return p.hasEnded() || dead() > 0
		})
		// Waiting for the lease to expire would show nothing more.
		w.exec(`UPDATE outbox_relay SET expires_at = now()`)
	}
	w.run(w.store, &outboxtest.RecordingPublisher{}, crashing())
	w.eventually("all others are published", func() bool { return w.pending() == 0 })
	letters := w.deadLetters(10)
	w.equal("dead letters", len(letters), 1)
	w.equal("the dead", fmt.Sprint(letters[0].ID, letters[0].Attempts),
		fmt.Sprint(ids[0], crashAttempts))
	t.Logf("after %d processes: %s", deaths, letters[0].Error)
}

// TestAfterACrashAnotherRelayGoesOnWhenTheLeaseEnds kills a relay between publish and settle, and
// then only waits.
func TestAfterACrashAnotherRelayGoesOnWhenTheLeaseEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.startProcess("hang")
	w.eventually("it owns all shards", func() bool {
		return query[int](w, `SELECT count(*) FROM outbox_shard WHERE relay IS NOT NULL`) == 16
	})
	ids := w.enqueue(thing("a", 1), thing("b", 1), thing("c", 1))
	select {
	case <-p.started:
	case <-time.After(patience):
		t.Fatal("the process publishes nothing")
	}
	recording := &outboxtest.RecordingPublisher{}
	w.run(w.store, recording, crashing())
	w.must(p.cmd.Process.Kill())
	w.published(recording, len(ids))
}
