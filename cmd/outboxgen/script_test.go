package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// realSQLC is where the tools module has its sqlc; "" in the processes that the scripts start.
var realSQLC string

func TestMain(m *testing.M) {
	testscript.Main(setup{m}, map[string]func(){"outboxgen": main})
}

// setup finds what the scripts need before they are run.
type setup struct{ *testing.M }

func (s setup) Run() int {
	path, err := findSQLC()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	realSQLC = path
	return s.M.Run()
}

// findSQLC builds sqlc, if the go command does not have it built already.
func findSQLC() (string, error) {
	tools, err := filepath.Abs("../../tools")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "tool", "-n", "sqlc")
	cmd.Dir = tools
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go tool -n sqlc: %w\n%s", err, &stderr)
	}
	return strings.TrimSpace(string(out)), nil
}

// TestScripts runs testdata/script. A script's $SQLC is the real one, which may be called; $NOSQLC
// fails and leaves a file "called" in the script's directory. Every script runs in a module of its
// own.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Condition: func(name string) (bool, error) {
			if name == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Setup: prepare,
		Cmds:  commandsOfScripts(),
	})
}

// prepare gives every script a go.mod, two sqlc and no other on its PATH.
func prepare(env *testscript.Env) error {
	noSQLC := filepath.Join(env.WorkDir, ".nosqlc")
	text := "#!/bin/sh\ntouch '" + filepath.Join(env.WorkDir, "called") +
		"'\necho 'sqlc must not be called' >&2\nexit 1\n"
	if err := os.WriteFile(noSQLC, []byte(text), 0o700); err != nil {
		return err
	}
	// or each of the many processes ends with a second's sleep
	env.Setenv("GORACE", "atexit_sleep_ms=0")
	env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, ".cache"))
	env.Setenv("SQLC", realSQLC)
	env.Setenv("NOSQLC", noSQLC)
	env.Setenv("PATH", strings.Join(withoutSQLC(filepath.SplitList(env.Getenv("PATH"))),
		string(filepath.ListSeparator)))
	// a search upwards ends here
	if err := os.Mkdir(filepath.Join(env.WorkDir, ".git"), 0o755); err != nil {
		return err
	}
	goMod := filepath.Join(env.WorkDir, "go.mod")
	if _, err := os.Stat(goMod); err != nil {
		return os.WriteFile(goMod, []byte("module github.com/acme/orders\n\ngo 1.25.0\n"), 0o600)
	}
	return nil
}

func withoutSQLC(path []string) []string {
	return slices.DeleteFunc(path, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "sqlc"))
		return err == nil
	})
}
