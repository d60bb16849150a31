// Package archtest checks the project's structure: which modules may require what, and which
// packages may import which.
package archtest

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const root = "github.com/outboxgen/outboxgen"

// allowed is all that the root module may require, since every user of the runtime gets these
// requirements, too.
var allowed = map[string]bool{
	"github.com/google/uuid":          true, // event ids
	"github.com/dave/jennifer":        true, // gen/golang
	"gopkg.in/yaml.v3":                true, // gen/source
	"github.com/google/go-cmp":        true, // tests
	"github.com/rogpeppe/go-internal": true, // tests
	"pgregory.net/rapid":              true, // tests
	"golang.org/x/sys":                true, // of go-internal
	"golang.org/x/tools":              true, // of go-internal
}

// imports says what the packages in and below a directory of the root module may import, apart from
// the standard library and each other. Tests may import anything.
var imports = []struct {
	below string
	may   []string
}{
	{"runtime/payload", []string{"github.com/google/uuid"}},
	{"runtime/backoff", nil},
	{"runtime/outbox/storage/", []string{root + "/runtime/outbox/storage"}},
	{"runtime/outbox/storage", []string{"github.com/google/uuid"}},
	{"runtime/outbox/internal/ledger", []string{root + "/runtime/backoff",
		root + "/runtime/outbox/storage"}},
	{"runtime/outbox", []string{"github.com/google/uuid", root + "/runtime/payload",
		root + "/runtime/backoff", root + "/runtime/outbox/"}},
	{
		"runtime/inbox",
		[]string{"github.com/google/uuid", root + "/runtime/payload", root + "/runtime/outbox"},
	},
	{"runtime/cloudevents", []string{"github.com/google/uuid", root + "/runtime/outbox"}},
	{"runtime/subscribe", []string{root + "/runtime/backoff", root + "/runtime/cloudevents",
		root + "/runtime/inbox", root + "/runtime/outbox", root + "/runtime/payload"}},
	{"runtime/", []string{"github.com/google/uuid", root + "/runtime/"}},
	{"templates", nil},
	{"gen/diag", nil},
	{"gen/dialect", nil},
	{"gen/source", []string{"gopkg.in/yaml.v3", root + "/gen/diag"}},
	{"gen/golang", []string{"github.com/dave/jennifer/jen", root + "/gen/", root + "/templates"}},
	{"gen", []string{root + "/gen/", root + "/templates"}},
	{"cmd", []string{root + "/gen"}},
}

func goTool(t *testing.T, args ...string) []string {
	t.Helper()
	return run(t, "go", args...)
}

// run runs a command in the root of the repository and returns the lines of its output.
func run(t *testing.T, name string, args ...string) []string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(cmd.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func TestRootModuleStaysLean(t *testing.T) {
	var mod struct {
		Require []struct{ Path string }
		Replace []struct{ Old struct{ Path string } }
	}
	if err := json.Unmarshal([]byte(strings.Join(goTool(t, "mod", "edit", "-json"), "\n")),
		&mod); err != nil {
		t.Fatal(err)
	}
	if len(mod.Require) == 0 {
		t.Fatal("no requirement was read")
	}
	for _, r := range mod.Require {
		if !allowed[r.Path] {
			t.Errorf("the root module requires %s: that belongs into a module of its own, or "+
				"into the list here with its reason", r.Path)
		}
	}
	for _, r := range mod.Replace {
		t.Errorf("the root module replaces %s, which breaks go install", r.Old.Path)
	}
}

func TestImportsRunOneWay(t *testing.T) {
	lines := goTool(t, "list", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, "./...")
	if len(lines) < 10 {
		t.Fatalf("only %d packages were listed", len(lines))
	}
	for _, line := range lines {
		fields := strings.Fields(line)
		pkg := strings.TrimPrefix(fields[0], root+"/")
		for _, imported := range fields[1:] {
			if strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") &&
				!mayImport(pkg, imported) {
				t.Errorf("%s imports %s", pkg, imported)
			}
		}
	}
}

func mayImport(pkg, imported string) bool {
	for _, rule := range imports {
		if pkg != rule.below && !strings.HasPrefix(pkg, strings.TrimSuffix(rule.below, "/")+"/") {
			continue
		}
		for _, may := range rule.may {
			if imported == may || strings.HasPrefix(imported, strings.TrimSuffix(may, "/")+"/") {
				return true
			}
		}
		return false
	}
	return false
}
