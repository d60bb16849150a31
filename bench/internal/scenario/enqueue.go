package scenario

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/outboxgen/outboxgen/bench/internal/lab"
	"github.com/outboxgen/outboxgen/bench/internal/measure"
	"github.com/outboxgen/outboxgen/bench/internal/report"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
)

// enqueue measures what an event adds to the business transaction of a single client, while no
// relay runs. All variants of the transaction share the connection and the tables, and take turns,
// so that changes on the machine affect all of them.
func enqueue(ctx context.Context, l *lab.Lab) (report.Result, error) {
	db, err := l.Database(ctx, 2)
	if err != nil {
		return report.Result{}, err
	}
	defer db.Drop()
	for _, prepare := range []func(context.Context, *lab.Database) error{
		openShop, relay.Prepare, river.Prepare,
	} {
		if err := prepare(ctx, db); err != nil {
			return report.Result{}, err
		}
	}
	f := field{
		plain: oneByOne(noEvent), event: oneByOne(relay.Enqueue),
		job: oneByOne(river.Enqueue), row: oneByOne(rival.Bare{}.Enqueue),
		piped: pipelined(nothingQueued), pipedEvent: pipelined(relay.Queue),
	}
	each, err := takeTurns(ctx, db, f.all(), lab.Pick(l, 7, 3), lab.Pick(l, 500, 200))
	if err != nil {
		return report.Result{}, err
	}
	for table, n := range map[string]int{
		"orders": len(f.all()) * each, "outbox": 3 * each, "river_job": each,
	} {
		if err := expectRows(ctx, db, table, n); err != nil {
			return report.Result{}, err
		}
	}
	claims, err := f.claims()
	return report.Result{Claims: claims}, err
}

// field has all the variants.
type field struct {
	plain, event, job, row *variant
	piped, pipedEvent      *variant
}

func (f field) all() []*variant {
	return []*variant{f.plain, f.event, f.job, f.row, f.piped, f.pipedEvent}
}

func (f field) claims() ([]report.Claim, error) {
	event, job, row := added(f.event.p50, f.plain.p50), added(f.job.p50,
		f.plain.p50), added(f.row.p50, f.plain.p50)
	pipedEvent := added(f.pipedEvent.p50, f.piped.p50)
	if job.Min() <= 0 {
		return nil, errors.New("bench: River's InsertTx seems to take no time: the machine is " +
			"too restless to compare")
	}
	return []report.Claim{
		{
			What: "enqueue in a business transaction, one client: what the event adds at the " +
				"median",
			Values: overhead(f.event.p50, f.plain.p50), Unit: "%", Bound: report.AtMost(30),
			Detail: fmt.Sprintf("%s with, %s without; %s", millis(f.event.p50), millis(f.plain.p50),
				shop),
		},
		{
			What:   "the same on the batch of a pipelined business transaction",
			Values: overhead(f.pipedEvent.p50, f.piped.p50), Unit: "%", Bound: report.AtMost(12),
			Detail: fmt.Sprintf("%s with, %s without", millis(f.pipedEvent.p50),
				millis(f.piped.p50)),
		},
		{
			What:   "the time that enqueueing adds: outboxgen against River's InsertTx",
			Values: event.Over(job), Unit: "×", Bound: report.AtMost(0.333),
			Detail: fmt.Sprintf("outboxgen adds %s, River %s, a plain INSERT of the outbox row %s",
				millis(event), millis(job), millis(row)),
		},
		{
			What: "the time that enqueueing adds: outboxgen on a pipelined batch against " +
				"River's InsertTx",
			Values: pipedEvent.Over(job), Unit: "×",
			Detail: fmt.Sprintf("outboxgen adds %s, River %s", millis(pipedEvent), millis(job)),
		},
	}, nil
}

// variant is one way to run the shop's transaction.
type variant struct {
	run  func(context.Context, *pgx.Conn, rival.Order) error
	took []time.Duration // in this round
	p50  measure.Series  // in milliseconds
}

func oneByOne(enqueue enqueueing) *variant {
	return &variant{run: func(ctx context.Context, conn *pgx.Conn, o rival.Order) error {
		return sell(ctx, conn, o, enqueue)
	}}
}

func pipelined(queue queueing) *variant {
	return &variant{run: func(ctx context.Context, conn *pgx.Conn, o rival.Order) error {
		return sellPipelined(ctx, conn, o, queue)
	}}
}

// takeTurns has every variant run n transactions in each round, in random turns, and returns how
// many each has run. A first round, in which statements are prepared and caches filled, does not
// count.
func takeTurns(
	ctx context.Context, db *lab.Database, variants []*variant, rounds, n int,
) (each int, err error) {
	conn, err := db.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	each = (1 + rounds) * n
	orders := sales(each * len(variants))
	for round := range 1 + rounds {
		if err := db.Analyse(ctx); err != nil {
			return 0, err
		}
		for range n {
			for _, i := range rand.Perm(len(variants)) {
				if err := variants[i].time(ctx, conn.Conn(), orders[0]); err != nil {
					return 0, fmt.Errorf("bench: a business transaction: %w", err)
				}
				orders = orders[1:]
			}
		}
		for _, v := range variants {
			v.endRound(round > 0)
		}
		slog.Info("enqueued", "round", round, "transactions", n*len(variants))
	}
	return each, nil
}

// time runs the transaction of o, from before BEGIN until COMMIT has returned.
func (v *variant) time(ctx context.Context, conn *pgx.Conn, o rival.Order) error {
	began := time.Now()
	err := v.run(ctx, conn, o)
	v.took = append(v.took, time.Since(began))
	return err
}

func (v *variant) endRound(counts bool) {
	if counts {
		v.p50 = append(v.p50, measure.Milliseconds(measure.Percentile(v.took, 0.5)))
	}
	v.took = v.took[:0]
}

// added returns by how much each round of s exceeds the same round of base.
func added(s, base measure.Series) measure.Series {
	more := make(measure.Series, len(s))
	for i := range s {
		more[i] = s[i] - base[i]
	}
	return more
}

// overhead returns by how many per cent each round of s exceeds the same round of base.
func overhead(s, base measure.Series) measure.Series {
	percent := added(s, base).Over(base)
	for i := range percent {
		percent[i] *= 100
	}
	return percent
}

// millis formats a time for people: "1.23 ms".
func millis(s measure.Series) string { return fmt.Sprintf("%.2f ms", s.Median()) }
