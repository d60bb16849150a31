package catalogue_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/diag"
)

var update = flag.Bool("update", false, "rewrite the expected diagnostics in testdata")

// A file of cases is a sequence of
//
//	=== name
//	the catalogue
//	>>>
//	the diagnostics, as people see them
//
// Unless the name ends in (whole), required keys that the catalogue lacks are added after it. Lint
// is shown in lint.txt only.
type diagnosticCase struct {
	name, yaml, want string
}

func readCases(t *testing.T, path string) []diagnosticCase {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var cases []diagnosticCase
	for _, block := range strings.Split("\n"+string(data), "\n=== ")[1:] {
		name, rest, _ := strings.Cut(strings.TrimSuffix(block, "\n")+"\n", "\n")
		yaml, want, _ := strings.Cut(rest, ">>>\n")
		cases = append(cases, diagnosticCase{name, yaml, want})
	}
	return cases
}

var required = []struct{ key, line string }{
	{"outboxgen", "outboxgen: 1\n"},
	{"service", "service: shop/orders\n"},
	{"go", "go: {package: events, dir: internal/events}\n"},
	{"database", "database: {engine: postgresql}\n"},
	{"defaults", "defaults: {topic: shop.orders}\n"},
}

func (c diagnosticCase) catalogue() string {
	yaml := c.yaml
	if strings.HasSuffix(c.name, "(whole)") {
		return yaml
	}
	for _, r := range required {
		if !regexp.MustCompile(`(?m)^` + r.key + `:`).MatchString(c.yaml) {
			yaml += r.line
		}
	}
	return yaml
}

func (c diagnosticCase) diagnose(t *testing.T, withLint bool) string {
	t.Helper()
	data := []byte(c.catalogue())
	model, list := catalogue.Parse("outbox.yaml", data)
	if (model == nil) != list.HasErrors() {
		t.Errorf("got a model: %v, and errors: %v", model != nil, list.HasErrors())
	}
	var shown diag.List
	for _, d := range list {
		if withLint || d.Severity == diag.Error {
			shown.Add(d)
		}
	}
	var b strings.Builder
	if err := diag.WriteText(&b, shown, map[string][]byte{"outbox.yaml": data}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestDiagnostics(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/diagnostics/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range paths {
		cases := readCases(t, path)
		var updated strings.Builder
		for _, c := range cases {
			got := c.diagnose(t, filepath.Base(path) == "lint.txt")
			updated.WriteString("=== " + c.name + "\n" + c.yaml + ">>>\n" + got)
			if *update {
				continue
			}
			t.Run(filepath.Base(path)+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("diagnostics differ (-want +got):\n%s", diff)
				}
			})
		}
		if *update {
			if err := os.WriteFile(path, []byte(updated.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
