package postgresenv

import (
	"context"
	"fmt"
	"strings"
)

// The environment variables that decide which server is used.
const (
	envURL      = "OUTBOXGEN_TEST_POSTGRES_URL"     // use this server, and no other
	envProvider = "OUTBOXGEN_TEST_PROVIDER"         // use this provider, and no other
	envImage    = "OUTBOXGEN_TEST_POSTGRES_IMAGE"   // the container image of the docker provider
	envVersion  = "OUTBOXGEN_TEST_POSTGRES_VERSION" // major version that local binaries must have
)

// A provider is one way to get a server.
type provider struct {
	name  string // as in OUTBOXGEN_TEST_PROVIDER
	start func(context.Context, Config) (*Server, error)
}

// providers returns all of them, in the order in which they are tried.
func providers(getenv func(string) string) []provider {
	version := getenv(envVersion)
	return []provider{
		{"url", func(ctx context.Context, _ Config) (*Server, error) {
			return connectURL(ctx, getenv(envURL))
		}},
		{"docker", func(ctx context.Context, cfg Config) (*Server, error) {
			return startDocker(ctx, cfg, getenv(envImage), version)
		}},
		{"local", func(ctx context.Context, cfg Config) (*Server, error) {
			return startBinaries(ctx, cfg, systemInstallations(), version,
				"on PATH or where packages put them")
		}},
		{"testdeps", func(ctx context.Context, cfg Config) (*Server, error) {
			return startBinaries(ctx, cfg, testdepsInstallations(), version, "in .testdeps")
		}},
	}
}

// chooseProviders returns the providers that the environment allows. Required is true if it asks
// for a particular one, so that the tests may not be skipped.
func chooseProviders(getenv func(string) string) (chosen []provider, required bool, err error) {
	all := providers(getenv)
	forced := getenv(envProvider)
	if forced == "" && getenv(envURL) != "" {
		forced = "url"
	}
	if forced == "" {
		return all[1:], false, nil
	}
	var names []string
	for _, p := range all {
		if p.name == forced {
			return []provider{p}, true, nil
		}
		names = append(names, p.name)
	}
	return nil, true, fmt.Errorf("postgresenv: %s is %q, want one of %s", envProvider, forced,
		strings.Join(names, ", "))
}

// startFirst returns the server of the first provider that has one.
func startFirst(
	ctx context.Context, cfg Config, candidates []provider, required bool,
) (*Server, error) {
	none := &UnavailableError{Required: required}
	for _, p := range candidates {
		server, err := p.start(ctx, cfg)
		if err == nil {
			return server, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("postgresenv: start a server: %s: %w", p.name, err)
		}
		none.Refusals = append(none.Refusals, Refusal{Provider: p.name, Err: err})
	}
	return nil, none
}

// Refusal is the reason why a provider has no server.
type Refusal struct {
	Provider string
	Err      error
}

// UnavailableError says that there is no server, and why each provider has none.
type UnavailableError struct {
	Refusals []Refusal
	Required bool // the environment asks for a particular provider
}

// Error lists every refusal, and what can be done about it.
func (e *UnavailableError) Error() string {
	var b strings.Builder
	b.WriteString("postgresenv: no PostgreSQL for the tests\n")
	for _, r := range e.Refusals {
		fmt.Fprintf(&b, "  %-9s %s\n", r.Provider+":",
			strings.ReplaceAll(strings.TrimSpace(r.Err.Error()), "\n", "\n            "))
	}
	b.WriteString("any one of these mends it:\n" +
		"  export " + envURL +
		"=postgres://user:password@host:port/database   (a role that may create databases)\n" +
		"  start Docker; the image is " + defaultImage + ", or what " + envImage + " names\n" +
		"  install PostgreSQL 14 or newer, for example: apt-get install postgresql\n" +
		"  scripts/testdeps.sh pg17   (needs npm)\n")
	return b.String()
}

// Unwrap returns every refusal for errors.Is and errors.As.
func (e *UnavailableError) Unwrap() []error {
	errs := make([]error, len(e.Refusals))
	for i, r := range e.Refusals {
		errs[i] = r.Err
	}
	return errs
}
