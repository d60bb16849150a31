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

// A provider is one way to come by a server.
type provider struct {
	name  string // as in OUTBOXGEN_TEST_PROVIDER
	start func(context.Context, Config) (*Server, error)
}

// providers are all ways, in the order in which they are tried.
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

// chooseProviders returns those that the environment leaves to choose from. Required is true where
// it asks for one in particular, so that doing without is no option.
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

// Refusal is the reason why one provider has no server.
type Refusal struct {
	Provider string
	Err      error
}

// UnavailableError says that no server could be had, and why each provider refused.
type UnavailableError struct {
	Refusals []Refusal
	Required bool // the environment asks for this provider in particular
}

// Error lists every refusal and the ways to mend it.
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

// Unwrap gives errors.Is and errors.As every refusal.
func (e *UnavailableError) Unwrap() []error {
	errs := make([]error, len(e.Refusals))
	for i, r := range e.Refusals {
		errs[i] = r.Err
	}
	return errs
}
