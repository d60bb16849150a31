// Package testenv has the servers that tests and the demo run on, in its subpackages
//
//   - [github.com/outboxgen/outboxgen/internal/testenv/postgresenv], a PostgreSQL server with a new
//     database for each test;
//   - [github.com/outboxgen/outboxgen/internal/testenv/natsenv], a NATS JetStream server inside the
//     process.
//
// In a test, that is one line:
//
//	pool := postgresenv.Open(t)      // *pgxpool.Pool on a database of the test's own
//	db := postgresenv.New(t)         // the same as a URL, for another process or driver: db.URL
//	url := natsenv.New(t).URL()      // JetStream on a free loopback port
//
// and outside of a test:
//
//	server, err := postgresenv.Start(ctx, postgresenv.Config{})
//	defer server.Stop()
//	db, err := server.CreateDatabase(ctx)
//
// docs/testing.md says where the servers come from and which environment variables decide it.
package testenv
