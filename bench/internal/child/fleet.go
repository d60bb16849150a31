package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"

	"github.com/outboxgen/outboxgen/internal/testenv/tempdir"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// Fleet is a number of relays that share one outbox, each in a process of its own.
type Fleet struct {
	children []*process
	reading  sync.WaitGroup
	messages chan message // closed when no child can say anything more
	progress []Progress   // of each child
}

// process is a child as its parent sees it.
type process struct {
	cmd      *exec.Cmd
	lifeline io.Closer // its standard input
	record   string    // the file with the ids of the events that it published
	report   *Report
}

// message is a line from a child, or the end of its lines.
type message struct {
	child int
	line
	ended bool
}

// Run starts n relays on the database at url and calls f. Then it stops them, and returns their
// reports. No child outlives it, nor ctx: if f fails, they are killed. The executable must call
// Main.
func Run(
	ctx context.Context, n int, url string, config outbox.Config, f func(*Fleet) error,
) ([]Report, error) {
	dir, err := tempdir.New("outboxgen-bench-relays-")
	if err != nil {
		return nil, fmt.Errorf("bench: relay processes: %w", err)
	}
	defer func() { _ = dir.Remove() }()
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	fleet := &Fleet{messages: make(chan message), progress: make([]Progress, n)}
	for i := range n {
		if err = fleet.start(ctx, i,
			job{URL: url, Record: dir.Join(strconv.Itoa(i)), Config: config}); err != nil {
			break
		}
	}
	go func() {
		fleet.reading.Wait()
		close(fleet.messages)
	}()
	if err == nil {
		err = f(fleet)
	}
	if err != nil {
		kill()
		_ = fleet.stop() // the error would say that they were killed
		return nil, err
	}
	if err := fleet.stop(); err != nil {
		return nil, err
	}
	return fleet.reports()
}

// start starts a child, and reads its lines.
func (f *Fleet) start(ctx context.Context, i int, j job) error {
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("bench: relay process: %w", err)
	}
	text, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("bench: relay process: %w", err)
	}
	cmd := exec.CommandContext(ctx, executable)
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("bench: relay process: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("bench: relay process: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("bench: relay process: %w", err)
	}
	f.children = append(f.children, &process{cmd: cmd, lifeline: stdin, record: j.Record})
	f.reading.Go(func() {
		lines := json.NewDecoder(stdout)
		for {
			var l line
			if lines.Decode(&l) != nil {
				f.messages <- message{child: i, ended: true}
				return
			}
			f.messages <- message{child: i, line: l}
		}
	})
	return nil
}

// Await returns once done is true for the last progress of each child. It fails if a child ends
// before that.
func (f *Fleet) Await(ctx context.Context, done func([]Progress) bool) error {
	for !done(f.progress) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("bench: relay processes: they stand at %+v: %w", f.progress,
				context.Cause(ctx))
		case m := <-f.messages:
			if m.ended {
				return fmt.Errorf("bench: relay process %d has ended too early", m.child)
			}
			f.receive(m)
		}
	}
	return nil
}

func (f *Fleet) receive(m message) {
	f.progress[m.child] = m.Progress
	f.children[m.child].report = m.Report
}

// stop tells the children to finish, and waits for them.
func (f *Fleet) stop() error {
	for _, c := range f.children {
		_ = c.lifeline.Close() // it may have ended by itself
	}
	for m := range f.messages {
		if !m.ended {
			f.receive(m)
		}
	}
	var errs []error
	for i, c := range f.children {
		if err := c.cmd.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("bench: relay process %d: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

// reports returns the children's reports, with their records.
func (f *Fleet) reports() ([]Report, error) {
	reports := make([]Report, len(f.children))
	for i, c := range f.children {
		if c.report == nil {
			return nil, fmt.Errorf("bench: relay process %d ended without a report", i)
		}
		ids, err := readRecord(c.record)
		if err != nil {
			return nil, err
		}
		reports[i] = *c.report
		reports[i].IDs = ids
	}
	return reports, nil
}
