package postgresenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// oldestMajor is the first PostgreSQL that outboxgen supports.
const oldestMajor = 14

// rootModule is the first line of the go.mod at the top of the repository.
const rootModule = "module github.com/outboxgen/outboxgen\n"

// An installation is a directory with the programs of one PostgreSQL.
type installation struct {
	bin    string // the directory of initdb and postgres
	prefix string // the whole installation, if it may be copied to another place, or ""
}

// systemInstallations returns those of the machine: on PATH, and then in the directories of Debian,
// Red Hat and Homebrew, the newest first.
func systemInstallations() []installation {
	var found []installation
	if postgres, err := exec.LookPath("postgres"); err == nil {
		// Debian keeps the programs of a version together. Those on PATH may be links to some of
		// them.
		if resolved, err := filepath.EvalSymlinks(postgres); err == nil {
			postgres = resolved
		}
		found = append(found, installation{bin: filepath.Dir(postgres)})
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin",
	} {
		bins, _ := filepath.Glob(pattern) // the only error is a bad pattern
		for _, bin := range newestFirst(bins) {
			if !slices.ContainsFunc(found, func(i installation) bool { return i.bin == bin }) {
				found = append(found, installation{bin: bin})
			}
		}
	}
	return found
}

// testdepsInstallations returns those that scripts/testdeps.sh has fetched into .testdeps at the
// top of the repository.
func testdepsInstallations() []installation {
	root, err := repositoryRoot()
	if err != nil {
		return nil
	}
	prefixes, _ := filepath.Glob(filepath.Join(root, ".testdeps", "pg*"))
	var found []installation
	for _, prefix := range newestFirst(prefixes) {
		found = append(found, installation{bin: filepath.Join(prefix, "bin"), prefix: prefix})
	}
	return found
}

// repositoryRoot looks for the repository upwards from the working directory, which is the
// package's in a test.
func repositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.Contains(string(mod)+"\n", rootModule) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod of " + strings.TrimSpace(rootModule) +
				" above the working directory")
		}
		dir = parent
	}
}

var lastNumber = regexp.MustCompile(`(\d+)\D*$`)

// newestFirst sorts directories by the number in their names.
func newestFirst(dirs []string) []string {
	number := func(dir string) int {
		n, _ := strconv.Atoi(lastNumber.FindString(strings.TrimSuffix(dir, "/bin")))
		return n
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return number(b) - number(a) })
	return dirs
}

var versionNumber = regexp.MustCompile(`\d+`)

// checkVersion runs postgres --version as the user that will own the server, which also shows
// whether that user may run it. Want is a major version, or "" for any that is supported.
func checkVersion(bin string, owner *account, want string) error {
	for _, program := range []string{"initdb", "postgres"} {
		out, err := owner.command(filepath.Join(bin, program), "--version").CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s does not run as %s: %w %s", filepath.Join(bin, program), owner,
				err, out)
		}
		major := versionNumber.FindString(string(out))
		if want != "" && major != want {
			return fmt.Errorf("%s is version %s, and %s asks for %s", bin, major, envVersion, want)
		}
		if n, _ := strconv.Atoi(major); n < oldestMajor {
			return fmt.Errorf("%s is version %q, older than %d", bin, major, oldestMajor)
		}
	}
	return nil
}
