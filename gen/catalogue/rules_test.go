package catalogue_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/diag"
)

// Cases that a text file cannot hold.
var unprintable = map[string]string{
	diag.YAMLEncoding: "service: shop/\xff",
	diag.YAMLLimit:    strings.Repeat("#", 3<<20),
}

func TestEveryRuleOfTheCatalogueHasACase(t *testing.T) {
	t.Parallel()
	triggered := map[string]bool{}
	collect := func(yaml string) {
		_, list := catalogue.Parse("outbox.yaml", []byte(yaml))
		for _, d := range list {
			triggered[d.Rule] = true
		}
	}
	paths, err := filepath.Glob("testdata/diagnostics/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		for _, c := range readCases(t, path) {
			collect(c.catalogue())
		}
	}
	for rule, yaml := range unprintable {
		collect(yaml)
		if !triggered[rule] {
			t.Errorf("the case of %s does not trigger it", rule)
		}
	}
	known := map[string]diag.Rule{}
	for _, rule := range diag.Rules() {
		known[rule.ID] = rule
		if rule.Category != diag.CategoryOutput && !triggered[rule.ID] {
			t.Errorf("no case triggers %s", rule.ID)
		}
	}
	for rule := range triggered {
		if _, ok := known[rule]; !ok {
			t.Errorf("%q is reported, and not in the table of rules", rule)
		}
	}
}
