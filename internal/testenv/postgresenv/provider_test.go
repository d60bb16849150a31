package postgresenv

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func environment(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestProvidersAreChosenByTheEnvironment(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vars     map[string]string
		want     []string
		required bool
	}{
		"nothing set": {nil, []string{"docker", "local", "testdeps"}, false},
		"a URL":       {map[string]string{envURL: "postgres://x"}, []string{"url"}, true},
		"a provider": {
			map[string]string{envProvider: "testdeps"}, []string{"testdeps"}, true,
		},
		"a provider over a URL": {
			map[string]string{envProvider: "local", envURL: "postgres://x"}, []string{"local"},
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chosen, required, err := chooseProviders(environment(c.vars))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range chosen {
				got = append(got, p.name)
			}
			if !slices.Equal(got, c.want) || required != c.required {
				t.Errorf("got %v required %v, want %v required %v", got, required, c.want,
					c.required)
			}
		})
	}
}

func TestUnknownProviderIsRefusedWithTheKnownOnes(t *testing.T) {
	t.Parallel()
	_, _, err := chooseProviders(environment(map[string]string{envProvider: "podman"}))
	if err == nil || !strings.Contains(err.Error(), `"podman"`) ||
		!strings.Contains(err.Error(), "url, docker, local, testdeps") {
		t.Errorf("error %v, want one that names podman and the known providers", err)
	}
}

func refuse(name string, err error) provider {
	return provider{name, func(context.Context, Config) (*Server, error) { return nil, err }}
}

func TestFirstProviderThatWorksIsUsed(t *testing.T) {
	t.Parallel()
	want := &Server{}
	got, err := startFirst(t.Context(), Config{}, []provider{
		refuse("docker", errors.New("no daemon")),
		{"local", func(context.Context, Config) (*Server, error) { return want, nil }},
		{"testdeps", func(context.Context, Config) (*Server, error) {
			t.Error("a provider after the one that works was asked")
			return nil, errors.New("unreachable")
		}},
	}, false)
	if got != want || err != nil {
		t.Errorf("got %p, %v, want %p", got, err, want)
	}
}

func TestErrorNamesEveryRefusalAndTheWaysToMendIt(t *testing.T) {
	t.Parallel()
	noDaemon := errors.New("no daemon")
	_, err := startFirst(t.Context(), Config{}, []provider{
		refuse("docker", noDaemon),
		refuse("local", errors.New("two\nlines")),
	}, false)
	if !errors.Is(err, noDaemon) {
		t.Errorf("errors.Is does not find the refusal in %v", err)
	}
	for _, want := range []string{
		"docker:   no daemon", "local:    two\n            lines", envURL, envImage,
		"apt-get install postgresql", "scripts/testdeps.sh pg17",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
}

func TestCancelledStartIsNotARefusal(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := startFirst(ctx, Config{},
		[]provider{refuse("docker", ctx.Err()), refuse("local", nil)}, false)
	var none *UnavailableError
	if !errors.Is(err, context.Canceled) || errors.As(err, &none) {
		t.Errorf("error %v, want the cancellation and no list of refusals", err)
	}
}

// fakeTB records how a test ended.
type fakeTB struct {
	testing.TB
	outcome string
}

func (f *fakeTB) Helper()           {}
func (f *fakeTB) Skip(args ...any)  { f.end("skip", args) }
func (f *fakeTB) Fatal(args ...any) { f.end("fatal", args) }

func (f *fakeTB) end(how string, args []any) {
	f.outcome = how + ": " + fmt.Sprint(args...)
	runtime.Goexit()
}

// outcome runs giveUp at the end of a test of its own, and returns how that ended.
func outcome(err error, ci bool) string {
	f := &fakeTB{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		giveUp(f, err, ci)
	}()
	<-done
	return f.outcome
}

func TestMissingServerSkipsOnALaptopAndFailsInCI(t *testing.T) {
	t.Parallel()
	missing := &UnavailableError{Refusals: []Refusal{{"docker", errors.New("no daemon")}}}
	required := &UnavailableError{
		Refusals: []Refusal{{"url", errors.New("refused")}}, Required: true,
	}
	for name, c := range map[string]struct {
		err  error
		ci   bool
		want string
	}{
		"laptop":                  {missing, false, "skip"},
		"CI":                      {missing, true, "fatal"},
		"asked for in particular": {required, false, "fatal"},
		"another error":           {errors.New("broken"), false, "fatal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := outcome(c.err, c.ci); got != c.want+": "+c.err.Error() {
				t.Errorf("got %q, want %s with the error", got, c.want)
			}
		})
	}
}

func TestCIIsSetByAnyValueThatDoesNotDenyIt(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{
		"": false, "0": false, "False": false, "no": false, "true": true, "1": true, "yes": true,
	} {
		if got := isCI(value); got != want {
			t.Errorf("CI=%q: got %v, want %v", value, got, want)
		}
	}
}

func TestServerNamedByURLMustBeUsable(t *testing.T) {
	t.Parallel()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ url, want string }{
		"nobody listens": {
			fmt.Sprintf("postgres://u:secret@127.0.0.1:%d/postgres", port), "cannot be used",
		},
		"no URL": {"host=127.0.0.1 password=secret", "not of the form"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chosen, required, err := chooseProviders(environment(map[string]string{envURL: c.url}))
			if err != nil {
				t.Fatal(err)
			}
			_, err = startFirst(t.Context(), Config{}, chosen, required)
			if err == nil || !strings.Contains(err.Error(), c.want) ||
				strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v, want %q and no password", err, c.want)
			}
			if got := outcome(err, false); !strings.HasPrefix(got, "fatal") {
				t.Errorf("a laptop without the server it names gets %q, want a failure", got)
			}
		})
	}
}
