package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/outboxgen/outboxgen/examples/internal/migrate"
	"github.com/outboxgen/outboxgen/examples/orders"
	"github.com/outboxgen/outboxgen/examples/orders/db"
	"github.com/outboxgen/outboxgen/examples/orders/internal/events"
	"github.com/outboxgen/outboxgen/examples/orders/internal/shopdb"
	"github.com/outboxgen/outboxgen/internal/testenv/natsenv"
	"github.com/outboxgen/outboxgen/internal/testenv/postgresenv"
	"github.com/outboxgen/outboxgen/internal/testenv/tempdir"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

const (
	example     = "github.com/outboxgen/outboxgen/examples/orders"
	compiler    = "github.com/outboxgen/outboxgen/cmd/outboxgen"
	orderStream = "ORDERS"
	stockStream = "STOCK"

	// JetStream drops a message whose id it has seen within this window, by default of two minutes.
	// The demo sets the shortest that is allowed, to show what consumers receive after the window.
	duplicateWindow = 100 * time.Millisecond

	// The lease and the retry delay are short enough to watch.
	lease, backoff = 4 * time.Second, 500 * time.Millisecond
)

// world is the servers and processes of the demo.
type world struct {
	*stage
	ctx      context.Context // ends with the demo
	end      context.CancelFunc
	cleanups []func() error

	programs string // directory
	database string // URL
	pool     *pgxpool.Pool
	shop     *orders.Shop

	nats         *natsenv.Server
	brokerIsDown bool
	js           jetstream.JetStream

	relayLink, inventoryLink *link
	relay, inventory         *process
	processes                []*process

	now state // at the last step
}

// open starts everything. The world must be closed even if open returns an error.
func open(ctx context.Context, s *stage) (*world, error) {
	w := &world{stage: s}
	w.ctx, w.end = context.WithCancel(ctx)
	s.printf("%soutboxgen: what gets lost without an outbox, and does not with one%s\n", s.bold,
		s.normal)
	for _, step := range []func(context.Context) error{
		w.checkCatalogue, w.buildPrograms, w.openDatabase, w.openBroker, w.stock,
	} {
		if err := step(ctx); err != nil {
			return w, err
		}
	}
	return w, nil
}

// close stops what open has started, in reverse order.
func (w *world) close() error {
	w.endProcesses()
	var errs []error
	for i := len(w.cleanups) - 1; i >= 0; i-- {
		errs = append(errs, w.cleanups[i]())
	}
	return errors.Join(errs...)
}

func (w *world) later(cleanup func() error) { w.cleanups = append(w.cleanups, cleanup) }

// checkCatalogue checks that the code this demo was compiled from is what the catalogue says.
func (w *world) checkCatalogue(ctx context.Context) error {
	dir, err := runGo(ctx, "list", "-f", "{{.Dir}}", example)
	if err != nil {
		return err
	}
	if _, err := runGo(ctx, "run", compiler, "check",
		filepath.Join(strings.TrimSpace(dir), "outbox.yaml")); err != nil {
		return err
	}
	w.say("catalogue   outbox.yaml compiles, to the code that is committed beside it")
	return nil
}

func (w *world) buildPrograms(ctx context.Context) error {
	dir, err := tempdir.New("outboxgen-demo-")
	if err != nil {
		return err
	}
	w.later(dir.Remove)
	w.programs = dir.Join()
	if _, err = runGo(ctx, "build", "-o", w.programs, example+"/cmd/relay",
		example+"/cmd/inventory"); err != nil {
		return err
	}
	w.say("programs    relay and inventory, as in examples/orders/cmd")
	return nil
}

func runGo(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s%s", strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out), nil
}

func (w *world) openDatabase(ctx context.Context) error {
	server, err := postgresenv.Start(ctx, postgresenv.Config{})
	if err != nil {
		return err
	}
	w.later(server.Stop)
	database, err := server.CreateDatabase(ctx)
	if err != nil {
		return err
	}
	w.later(func() error { return server.DropDatabase(context.WithoutCancel(ctx), database) })
	w.database = database.URL
	if w.pool, err = pgxpool.New(ctx, database.URL); err != nil {
		return err
	}
	w.later(func() error { w.pool.Close(); return nil })
	w.say("database    %s", server.Source)
	if err := migrate.Goose(ctx, w.pool, db.Migrations()); err != nil {
		return err
	}
	store := events.NewStore(w.pool)
	w.shop = orders.NewShop(store)
	go outbox.ForwardWakeups(w.ctx, store) // for the orders that this process places
	return nil
}

func (w *world) openBroker(ctx context.Context) (err error) {
	if w.nats, err = natsenv.Start(natsenv.Config{}); err != nil {
		return err
	}
	w.later(w.nats.Close)
	nc, err := nats.Connect(w.nats.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(interval))
	if err != nil {
		return err
	}
	w.later(func() error { nc.Close(); return nil })
	if w.js, err = jetstream.New(nc); err != nil {
		return err
	}
	for name, topic := range map[string]string{
		orderStream: "shop.orders", stockStream: "shop.stock",
	} {
		config := jetstream.StreamConfig{
			Name: name, Subjects: []string{topic}, Duplicates: duplicateWindow,
		}
		if _, err := w.js.CreateStream(ctx, config); err != nil {
			return err
		}
	}
	w.say("broker      NATS JetStream %s, in this process", nc.ConnectedServerVersion())
	return w.openLinks(strings.TrimPrefix(w.nats.URL(), "nats://"))
}

// openLinks puts a link between the broker and each process, for the demo to break.
func (w *world) openLinks(broker string) (err error) {
	ctx, end := context.WithCancel(context.Background())
	w.later(func() error { end(); return nil })
	if w.relayLink, err = newLink(ctx, broker); err != nil {
		return err
	}
	w.later(w.relayLink.listener.Close)
	w.inventoryLink, err = newLink(ctx, broker)
	return err
}

func (w *world) stock(ctx context.Context) error {
	if err := shopdb.New(w.pool).AddStock(ctx,
		shopdb.AddStockParams{Sku: "mug", Quantity: allMugs}); err != nil {
		return err
	}
	w.now = state{Mugs: allMugs}
	return nil
}

func (w *world) startRelay() (err error) {
	w.relay, err = w.start("relay", w.relayLink.url(), filepath.Join(w.programs, "relay"),
		"-lease", lease.String(), "-min-retry-delay", backoff.String())
	return err
}

func (w *world) startInventory() (err error) {
	w.inventory, err = w.start("inventory", w.inventoryLink.url(),
		filepath.Join(w.programs, "inventory"), "-ack-wait", "2s")
	return err
}
