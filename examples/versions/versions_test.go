package versions_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/outboxgen/outboxgen/examples/internal/migrate"
	next "github.com/outboxgen/outboxgen/examples/versions/new/events"
	old "github.com/outboxgen/outboxgen/examples/versions/old/events"
	"github.com/outboxgen/outboxgen/internal/testenv/natsenv"
	"github.com/outboxgen/outboxgen/internal/testenv/postgresenv"
	"github.com/outboxgen/outboxgen/runtime/inbox"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
	outboxnats "github.com/outboxgen/outboxgen/runtime/publish/nats"
)

const (
	orders   = 100 // for each step of a test
	patience = 60 * time.Second
)

// TestReadersOfBothFirstThenTheWriter is the first of the right ways: nobody writes a version
// before every reader knows it, and the old reader is gone before the new writer starts.
func TestReadersOfBothFirstThenTheWriter(t *testing.T) {
	t.Parallel()
	s := open(t)
	oldReader := s.subscribe(s.oldReader())
	s.subscribe(s.newReader())
	s.place(orders, s.writeOld)
	oldReader.stop()
	s.subscribe(s.newReader())
	s.place(orders, s.writeOld, s.writeNew) // writers of both releases
	s.place(orders, s.writeNew)
	s.expectOneInvoiceEach()
}

// TestTheWriterEnqueuesBothWhileReadersMove is the other right way: the new writer enqueues both
// versions under one id, beside a writer of the old release and readers of both releases.
func TestTheWriterEnqueuesBothWhileReadersMove(t *testing.T) {
	t.Parallel()
	s := open(t)
	oldReader := s.subscribe(s.oldReader())
	s.place(orders, s.writeOld, s.writeBoth)
	s.subscribe(s.newReader())
	s.place(orders, s.writeOld, s.writeBoth, s.queueBoth)
	oldReader.stop()
	s.place(orders, s.writeBoth, s.writeNew)
	s.expectOneInvoiceEach()
}

// TestAReaderThatNeverMovesTakesTheOtherVersionForADuplicate has both versions enqueued for a
// reader that knows one: the other one is acknowledged.
func TestAReaderThatNeverMovesTakesTheOtherVersionForADuplicate(t *testing.T) {
	t.Parallel()
	s := open(t)
	reader := s.subscribe(s.oldReader())
	s.place(orders, s.writeBoth)
	s.expectOneInvoiceEach()
	if got := reader.Stats(); got.Acknowledged != 2*orders || got.Duplicates != orders {
		t.Errorf("got %+v, want %d acknowledged, half of them duplicates", got, 2*orders)
	}
}

// TestAWriterThatMovesTooSoonWaitsForAReader is a mistake that costs time and loses no event: at
// first no reader knows the version, then one of two does.
func TestAWriterThatMovesTooSoonWaitsForAReader(t *testing.T) {
	t.Parallel()
	s := open(t)
	oldReader := s.subscribe(s.oldReader())
	s.place(orders, s.writeNew)
	s.eventually("all were handed back",
		func() bool { return oldReader.Stats().UnknownVersion >= orders })
	if got := oldReader.Stats(); got.Acknowledged+got.Ignored != 0 || s.invoices() != 0 {
		t.Fatalf("got %+v and %d invoices of a version that nobody reads", got, s.invoices())
	}
	s.subscribe(s.newReader())
	s.place(orders, s.writeNew, s.writeOld)
	s.expectOneInvoiceEach()
}

// TestAReaderOfTheNextVersionOnlyBesideTheOldOne is another mistake: a release that reads only the
// next version runs beside one that reads only the old one.
func TestAReaderOfTheNextVersionOnlyBesideTheOldOne(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.subscribe(s.oldReader())
	s.subscribe(inbox.New[pgx.Tx]("invoices", s.newStore, map[string]inbox.Route[pgx.Tx]{
		"order.placed@2": inbox.RouteTo(func(ctx context.Context, tx pgx.Tx, _ *outbox.Message,
			e next.OrderPlacedV2) error {
			return writeInvoice(ctx, tx, "next only", e.OrderID)
		}),
	}))
	s.place(2*orders, s.writeOld, s.writeNew, s.writeBoth)
	s.expectOneInvoiceEach()
}

// TestADeadLetterIsOneVersionOfAFact has both versions of a fact refused until they are dead
// letters: neither hides the other, and they are replayed together.
func TestADeadLetterIsOneVersionOfAFact(t *testing.T) {
	t.Parallel()
	s := tables(t)
	var id uuid.UUID
	s.inTx(func(tx pgx.Tx) (err error) {
		order := uuid.New()
		id, err = s.newStore.EnqueueVersions(t.Context(), tx, both(order))
		if err == nil { // a producer may run twice
			_, err = s.newStore.EnqueueVersions(t.Context(), tx, both(order), outbox.WithID(id))
		}
		return err
	})
	relay, err := outbox.NewRelay(s.newStore, refusing{}, outbox.Config{Logger: silent()})
	s.must(err)
	_, err = relay.RunOnce(t.Context())
	s.must(err)
	list, err := s.newStore.ListDeadLetters(t.Context(), storage.ListDeadLettersParams{Limit: 10})
	s.must(err)
	letters, versions := list.DeadLetters, map[string]int{}
	for _, letter := range letters {
		if letter.ID == id {
			versions[letter.TypeName()]++
		}
	}
	if len(letters) != 2 || versions["order.placed@1"] != 1 || versions["order.placed@2"] != 1 {
		t.Fatalf("got dead letters %v, want each version once", versions)
	}
	done, err := s.newStore.ReplayDeadLetters(t.Context(),
		storage.ReplayDeadLettersParams{IDs: []storage.ID{id}})
	s.must(err)
	pending := query[int](s, `SELECT count(*) FROM outbox WHERE id = $1`, id.String())
	if done.Replayed != 2 || pending != 2 {
		t.Errorf("replayed %d, %d pending, want both versions", done.Replayed, pending)
	}
}

// shop is a database, a broker, a relay and the orders.
type shop struct {
	*testing.T
	pool     *pgxpool.Pool
	consumer jetstream.Consumer
	stream   jetstream.Stream
	oldStore *old.Store
	newStore *next.Store
	placed   int
}

// tables returns a shop without a broker.
func tables(t *testing.T) *shop {
	t.Helper()
	s := &shop{T: t, pool: postgresenv.Open(t)}
	s.must(migrate.Plain(t.Context(), s.pool, os.DirFS("old/migrations")))
	_, err := s.pool.Exec(t.Context(),
		`CREATE TABLE invoice (order_id uuid NOT NULL, release text NOT NULL)`)
	s.must(err)
	s.oldStore, s.newStore = old.NewStore(s.pool), next.NewStore(s.pool)
	return s
}

// open returns a shop whose relay runs.
func open(t *testing.T) *shop {
	t.Helper()
	s := tables(t)
	nc, err := nats.Connect(natsenv.New(t).URL())
	s.must(err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	s.must(err)
	s.stream, err = js.CreateStream(t.Context(),
		jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
	s.must(err)
	s.consumer, err = s.stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{
		Durable: "invoices", FilterSubject: "orders.placed", MaxDeliver: -1, MaxAckPending: -1,
		AckWait: 2 * time.Second,
	})
	s.must(err)
	publisher, err := outboxnats.NewPublisher(js, outboxnats.PublisherConfig{})
	s.must(err)
	relay, err := outbox.NewRelay(s.newStore, publisher, outbox.Config{Logger: silent()})
	s.must(err)
	s.background(relay.Run)
	return s
}

// background runs a function until the test ends or the returned function is called.
func (s *shop) background(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.Errorf("Run: %v", err)
		}
	})
	s.Cleanup(stop)
	return stop
}

type reader struct {
	*outboxnats.Subscriber
	stop func()
}

// subscribe runs a replica of the consumer.
func (s *shop) subscribe(h inbox.Handler) *reader {
	s.Helper()
	subscriber, err := outboxnats.NewSubscriber(s.consumer, h, outboxnats.SubscriberConfig{
		MinRetryDelay: 5 * time.Millisecond, MaxRetryDelay: 100 * time.Millisecond,
		Logger: silent(),
	})
	s.must(err)
	return &reader{subscriber, s.background(subscriber.Run)}
}

func (s *shop) oldReader() inbox.Handler { return old.NewInvoices(s.oldStore, oldInvoices{}) }
func (s *shop) newReader() inbox.Handler { return next.NewInvoices(s.newStore, newInvoices{}) }

// writeInvoice is the effect, which only the inbox prevents from happening twice. It fails at
// times.
func writeInvoice(ctx context.Context, tx pgx.Tx, release string, order uuid.UUID) error {
	if _, err := tx.Exec(ctx, `INSERT INTO invoice VALUES ($1, $2)`, order.String(),
		release); err != nil {
		return err
	}
	if rand.IntN(10) == 0 {
		return errors.New("at times")
	}
	return nil
}

type oldInvoices struct{}

func (oldInvoices) HandleOrderPlacedV1(
	ctx context.Context, tx old.InvoicesTx, e old.OrderPlacedV1,
) error {
	return writeInvoice(ctx, tx, "old", e.OrderID)
}

type newInvoices struct{}

func (newInvoices) HandleOrderPlacedV1(
	ctx context.Context, tx next.InvoicesTx, e next.OrderPlacedV1,
) error {
	return newInvoice(ctx, tx, e.OrderID)
}

func (newInvoices) HandleOrderPlacedV2(
	ctx context.Context, tx next.InvoicesTx, e next.OrderPlacedV2,
) error {
	return newInvoice(ctx, tx, e.OrderID)
}

func newInvoice(ctx context.Context, tx next.InvoicesTx, order uuid.UUID) error {
	_, err := tx.EnqueueVersions(ctx, []next.Event{
		next.InvoiceWrittenV1{OrderID: order},
		next.InvoiceWrittenV2{OrderID: order, Currency: "EUR"},
	})
	return errors.Join(err, writeInvoice(ctx, tx, "new", order))
}

type writer func(tx pgx.Tx, order uuid.UUID) error

func (s *shop) writeOld(tx pgx.Tx, order uuid.UUID) error {
	_, err := s.oldStore.EnqueueOrderPlacedV1(s.Context(), tx, old.OrderPlacedV1{OrderID: order})
	return err
}

func (s *shop) writeNew(tx pgx.Tx, order uuid.UUID) error {
	_, err := s.newStore.EnqueueOrderPlacedV2(s.Context(), tx,
		next.OrderPlacedV2{OrderID: order, Currency: "EUR"})
	return err
}

func both(order uuid.UUID) []next.Event {
	return []next.Event{
		next.OrderPlacedV1{OrderID: order}, next.OrderPlacedV2{OrderID: order, Currency: "EUR"},
	}
}

func (s *shop) writeBoth(tx pgx.Tx, order uuid.UUID) error {
	versions := both(order)
	rand.Shuffle(2, func(i, j int) { versions[i], versions[j] = versions[j], versions[i] })
	_, err := s.newStore.EnqueueVersions(s.Context(), tx, versions)
	return err
}

func (s *shop) queueBoth(tx pgx.Tx, order uuid.UUID) error {
	var batch pgx.Batch
	if _, err := s.newStore.QueueVersions(s.Context(), &batch, both(order)); err != nil {
		return err
	}
	return tx.SendBatch(s.Context(), &batch).Close()
}

// place places n orders, each by a writer chosen at random.
func (s *shop) place(n int, writers ...writer) {
	s.Helper()
	for range n {
		write := writers[rand.IntN(len(writers))]
		s.inTx(func(tx pgx.Tx) error { return write(tx, uuid.New()) })
	}
	s.placed += n
}

func (s *shop) inTx(f func(tx pgx.Tx) error) {
	s.Helper()
	s.must(pgx.BeginFunc(s.Context(), s.pool, f))
}

func (s *shop) invoices() int { return query[int](s, `SELECT count(*) FROM invoice`) }

// expectOneInvoiceEach waits until no event is under way. Then each order must have had one effect,
// and what the new release emitted must have been published in both versions.
func (s *shop) expectOneInvoiceEach() {
	s.Helper()
	s.eventually("everything is handled", func() bool {
		info, err := s.consumer.Info(s.Context())
		s.must(err)
		return query[int](s, `SELECT count(*) FROM outbox`) == 0 && info.NumPending == 0 &&
			info.NumAckPending == 0
	})
	twice := query[int](s, `SELECT count(*)
		FROM (SELECT FROM invoice GROUP BY order_id HAVING count(*) > 1) AS d`)
	if distinct := query[int](s, `SELECT count(DISTINCT order_id)
		FROM invoice`); distinct != s.placed || twice != 0 {
		s.Errorf("of %d orders %d had an effect, and %d several", s.placed, distinct, twice)
	}
	info, err := s.stream.Info(s.Context(), jetstream.WithSubjectFilter("orders.invoiced"))
	s.must(err)
	if got, want := info.State.Subjects["orders.invoiced"],
		uint64(2*query[int](s, `SELECT count(*) FROM invoice WHERE release = 'new'`)); got != want {
		s.Errorf("the stream keeps %d messages of what was emitted, want %d", got, want)
	}
}

func query[T any](s *shop, sql string, args ...any) (value T) {
	s.Helper()
	s.must(s.pool.QueryRow(s.Context(), sql, args...).Scan(&value))
	return value
}

func (s *shop) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *shop) eventually(what string, ok func() bool) {
	s.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			s.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// refusing is a publisher that refuses every event for good.
type refusing struct{}

func (refusing) Publish(context.Context, *outbox.Message) error {
	return outbox.Permanent(errors.New("refused"))
}

func silent() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
