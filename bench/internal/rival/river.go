package rival

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// River is River with the client settings of its own benchmark. An event is a job, and the job's
// worker publishes it. Enqueue notifies as rarely as River does by default, which costs the
// business transactions least.
type River struct {
	// NoIndex drops River's two GIN indexes, on arguments and metadata. It is a control: the jobs
	// of River's own benchmark have hardly any arguments, whereas these have a whole order, all of
	// which is indexed.
	NoIndex bool
}

// job is the order as the arguments of a job, which River stores as JSON.
type job Order

// Kind implements river.JobArgs.
func (job) Kind() string { return "order.placed" }

// worker publishes the order of its job.
type worker struct {
	river.WorkerDefaults[job]
	publish publishJob
}

// publishJob publishes the order of a job.
type publishJob func(context.Context, *river.Job[job]) error

// Work implements river.Worker.
func (w *worker) Work(ctx context.Context, j *river.Job[job]) error { return w.publish(ctx, j) }

// These clients only insert, and get a transaction each time, so that they need no pool and serve
// every database. A client notifies once in its FetchCooldown at most.
var (
	sparing = sync.OnceValues(func() (*river.Client[pgx.Tx], error) {
		return newInserter(river.FetchCooldownDefault)
	})
	prompt = sync.OnceValues(func() (*river.Client[pgx.Tx], error) {
		return newInserter(river.FetchCooldownMin)
	})
)

func newInserter(cooldown time.Duration) (*river.Client[pgx.Tx], error) {
	return river.NewClient(riverpgxv5.New(nil), &river.Config{
		FetchCooldown: cooldown, Logger: slog.New(slog.DiscardHandler),
	})
}

// newWorking returns a client that calls publish for each job. The configuration says how often it
// fetches, and where it logs.
func newWorking(
	db *lab.Database, config river.Config, publish publishJob,
) (*river.Client[pgx.Tx], error) {
	config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2000}}
	// River's reindexing at midnight would affect one measurement and not another.
	config.ReindexerSchedule = river.NeverSchedule()
	config.Workers = river.NewWorkers()
	river.AddWorker(config.Workers, &worker{publish: publish})
	return river.NewClient(riverpgxv5.New(db.Pool), &config)
}

// Name implements Contestant.
func (r River) Name() string {
	if r.NoIndex {
		return "River without its GIN indexes"
	}
	return "River"
}

// Prepare implements Contestant.
func (r River) Prepare(ctx context.Context, db *lab.Database) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(db.Pool),
		&rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil || !r.NoIndex {
		return err
	}
	_, err = db.Exec(ctx, "DROP INDEX river_job_args_index, river_job_metadata_index")
	return err
}

// Fill implements Contestant.
func (River) Fill(ctx context.Context, db *lab.Database, orders []Order) error {
	client, err := sparing()
	if err != nil {
		return err
	}
	return InBatches(orders, func(batch []Order) error {
		jobs := make([]river.InsertManyParams, len(batch))
		for i, o := range batch {
			jobs[i].Args = job(o)
		}
		return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
			_, err := client.InsertManyFastTx(ctx, tx, jobs)
			return err
		})
	})
}

// Enqueue implements Enqueuer.
func (River) Enqueue(ctx context.Context, tx pgx.Tx, o Order) error {
	return insert(ctx, sparing, tx, o)
}

func insert(
	ctx context.Context, inserter func() (*river.Client[pgx.Tx], error), tx pgx.Tx, o Order,
) error {
	client, err := inserter()
	if err != nil {
		return err
	}
	_, err = client.InsertTx(ctx, tx, job(o), nil)
	return err
}

// Drain implements Contestant. An event counts as published when River's completer has recorded the
// job as completed.
func (r River) Drain(ctx context.Context, db *lab.Database, n int) (time.Duration, error) {
	var worked atomic.Int64
	took, err := r.drain(ctx, db, n, func(context.Context, *river.Job[job]) error {
		worked.Add(1)
		return nil
	})
	return took, errors.Join(err, exactly(n, worked.Load()))
}

// drainTo implements Streamer. The worker does what users write by hand: it returns when the stream
// has acknowledged the message, whose id stays the same if the job is retried.
func (r River) drainTo(
	ctx context.Context, db *lab.Database, n int, s *stream,
) (time.Duration, error) {
	return r.drain(ctx, db, n, func(ctx context.Context, j *river.Job[job]) error {
		o, id := Order(j.Args), strconv.FormatInt(j.ID, 10)
		_, err := s.js.PublishMsg(ctx, cloudEvent(id, j.CreatedAt, o, JSON(o)))
		return err
	})
}

func (River) drain(
	ctx context.Context, db *lab.Database, n int, publish publishJob,
) (time.Duration, error) {
	var warning firstWarning
	client, err := newWorking(db, river.Config{
		FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond,
		Logger: warning.logger(),
	}, publish)
	if err != nil {
		return 0, err
	}
	// Results that do not fit into the channel would be dropped.
	results, cancel := client.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: n + 1, Kinds: []river.EventKind{
			river.EventKindJobCompleted, river.EventKindJobFailed, river.EventKindJobCancelled,
		},
	})
	defer cancel()
	began := time.Now()
	if err := client.Start(ctx); err != nil {
		return 0, err
	}
	err = awaitCompleted(ctx, results, n)
	took := time.Since(began)
	stopping, release := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer release()
	return took, errors.Join(err, client.Stop(stopping), warning.err(),
		noneLeft(ctx, db, "SELECT count(*) FROM river_job WHERE state <> 'completed'"))
}

// awaitCompleted waits until n jobs are completed.
func awaitCompleted(ctx context.Context, results <-chan *river.Event, n int) error {
	for range n {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case result, open := <-results:
			if !open {
				return errors.New("bench: River stopped by itself")
			}
			if result.Kind != river.EventKindJobCompleted {
				return jobError(result)
			}
		}
	}
	return nil
}

// jobError says why a job was not completed, if River knows.
func jobError(e *river.Event) error {
	err := fmt.Errorf("bench: %s: job %d", e.Kind, e.Job.ID)
	if n := len(e.Job.Errors); n > 0 {
		err = fmt.Errorf("%w: %s", err, e.Job.Errors[n-1].Error)
	}
	return err
}

// PromptRiver is River tuned for latency instead of throughput: it notifies, fetches and polls as
// often as its configuration allows.
type PromptRiver struct{ River }

// Name implements Follower.
func (PromptRiver) Name() string { return "River, fetch cooldown 1 ms" }

// Enqueue implements Follower.
func (PromptRiver) Enqueue(ctx context.Context, tx pgx.Tx, o Order) error {
	return insert(ctx, prompt, tx, o)
}

// Follow implements Follower.
func (PromptRiver) Follow(
	ctx context.Context, db *lab.Database, ready func(), published func(uuid.UUID),
) error {
	client, err := newWorking(db, river.Config{
		FetchCooldown: river.FetchCooldownMin, FetchPollInterval: river.FetchPollIntervalMin,
		Logger: slog.New(slog.DiscardHandler),
	}, func(_ context.Context, j *river.Job[job]) error {
		published(j.Args.OrderID)
		return nil
	})
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	ready()
	<-client.Stopped()
	return nil
}
