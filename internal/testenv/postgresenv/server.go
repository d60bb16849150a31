package postgresenv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"

	"github.com/jackc/pgx/v5"
)

// databasePrefix begins the name of every database that is created here, so that those which a
// killed run left on a server of yours can be recognised.
const databasePrefix = "outboxgen_test_"

// Config configures the server that [Start] starts. The zero value is ready to use.
type Config struct {
	// Durable turns on fsync, full_page_writes and synchronous_commit. Defaults to false: a commit
	// survives the death of any process but not of the machine, which is enough for tests. It does
	// not apply to a server that OUTBOXGEN_TEST_POSTGRES_URL names.
	Durable bool
	// Settings are further settings of the server, such as "shared_buffers": "512MB"; they override
	// those of this package. They do not apply to a server that OUTBOXGEN_TEST_POSTGRES_URL names.
	Settings map[string]string
}

// Server is a running PostgreSQL. Its methods may be called concurrently.
type Server struct {
	// Source describes the server for people: "PostgreSQL 17.10, private instance of
	// /usr/lib/postgresql/17/bin".
	Source string

	admin    *url.URL
	stop     func() error
	stopOnce sync.Once
	stopErr  error
	private  *private // nil if it runs in a container, or was not started here
	foreign  bool     // OUTBOXGEN_TEST_POSTGRES_URL names it
}

// Database is an empty database on a [Server].
type Database struct {
	Name string
	URL  string // postgres://…, with every parameter that a client needs
}

// Start starts the first server that works, as described in the package comment. If none does, it
// returns an [UnavailableError]. The server is stopped by [Server.Stop], and in any case at the end
// of this process.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	candidates, required, err := chooseProviders(os.Getenv)
	if err != nil {
		return nil, err
	}
	return startFirst(ctx, cfg, candidates, required)
}

// CreateDatabase creates an empty database with a random name, in UTF-8.
func (s *Server) CreateDatabase(ctx context.Context) (Database, error) {
	name := databasePrefix + rand.Text()[:12]
	// template0 never has a connection, so that other users of a shared server cannot block this.
	create := "CREATE DATABASE " + pgx.Identifier{name}.Sanitize() +
		" TEMPLATE template0 ENCODING 'UTF8'"
	if err := s.exec(ctx, create); err != nil {
		return Database{}, fmt.Errorf("postgresenv: create database %s on %s: %w", name, s.Source,
			err)
	}
	u := *s.admin
	u.Path = "/" + name
	return Database{Name: name, URL: u.String()}, nil
}

// DropDatabase removes a database and ends the connections to it.
func (s *Server) DropDatabase(ctx context.Context, db Database) error {
	if err := s.exec(ctx,
		"DROP DATABASE IF EXISTS "+pgx.Identifier{db.Name}.Sanitize()+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("postgresenv: drop database %s on %s: %w", db.Name, s.Source, err)
	}
	return nil
}

// Own reports whether tests may do anything to the server, such as crash it.
func (s *Server) Own() bool { return !s.foreign }

// Stop stops the server and removes its files. It leaves a server alone that
// OUTBOXGEN_TEST_POSTGRES_URL names. Later calls return what the first one returned.
func (s *Server) Stop() error {
	s.stopOnce.Do(func() { s.stopErr = s.stop() })
	return s.stopErr
}

func (s *Server) exec(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, s.admin.String())
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}

// describe asks the server at admin for its version; origin says where the server comes from.
func describe(ctx context.Context, admin *url.URL, origin string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, admin.String())
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return fmt.Sprintf("PostgreSQL %s, %s", conn.PgConn().ParameterStatus("server_version"),
		origin), nil
}
