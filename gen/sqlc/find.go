package sqlc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/outboxgen/outboxgen/gen/gomod"
	"github.com/outboxgen/outboxgen/gen/output"
)

const installCommand = "go install " + pkg + "@" + TestedVersion

// Find returns the first of these: the program at path, if path is not empty; `go tool sqlc`, or
// `go tool -modfile=tools/go.mod sqlc`, of the module that dir is in or of one above it in the same
// repository; sqlc on PATH.
func Find(path, dir string) (Command, error) {
	if path != "" {
		return program(path, "--sqlc")
	}
	for ; ; dir = filepath.Dir(dir) {
		if listsTool(filepath.Join(dir, "go.mod")) {
			return Command{
				Args: []string{"go", "tool", "sqlc"}, Dir: dir, Timeout: buildTimeout, Builds: true,
			}, nil
		}
		// Run inside tools/, it needs no module above; and a workspace that leaves tools/ out does
		// not matter.
		if tools := filepath.Join(dir, "tools"); listsTool(filepath.Join(tools, "go.mod")) {
			return Command{Args: []string{"go", "tool", "sqlc"}, Dir: tools, Env: []string{
				"GOWORK=off",
			}, Timeout: buildTimeout, Builds: true}, nil
		}
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil || dir == filepath.Dir(dir) {
			break
		}
	}
	if path, err := exec.LookPath("sqlc"); err == nil {
		return program(path, "PATH")
	}
	return Command{}, ErrMissing
}

// ErrMissing says that there is no sqlc, and how to get one.
var ErrMissing = fmt.Errorf(`sqlc: not found, and the generated SQL has to be compiled. Install it in one of these ways:
  %s
  go get -tool %s@%s   (in the service's module, or in tools/go.mod)
or say where it is: --sqlc PATH`, installCommand, pkg, TestedVersion)

// program checks that there is something to run. An absolute path is the same from every directory.
func program(path, from string) (Command, error) {
	found, err := exec.LookPath(path)
	if err == nil {
		found, err = filepath.Abs(found)
	}
	if err != nil {
		return Command{}, fmt.Errorf("sqlc: %s: %w", from, err)
	}
	return Command{Args: []string{found}, Timeout: runTimeout}, nil
}

func listsTool(file string) bool {
	data, err := output.ReadFile(file)
	return err == nil && slices.Contains(gomod.Parse(data).Tools, pkg)
}
