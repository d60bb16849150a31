package catalogue

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/outboxgen/outboxgen/gen/diag"
)

func readDoc(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// example returns the first block of a document that is in a language.
func example(t *testing.T, doc, language string) string {
	t.Helper()
	_, rest, found := strings.Cut(doc, "\n```"+language+"\n")
	block, _, closed := strings.Cut(rest, "\n```\n")
	if !found || !closed {
		t.Fatalf("there is no block of %q", language)
	}
	return block + "\n"
}

func TestTheDocumentedCataloguesAreSound(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"README.md", "docs/catalogue.md"} {
		_, list := Parse(name, []byte(example(t, readDoc(t, name), "yaml")))
		for _, d := range list {
			if d.Severity != diag.Info {
				t.Errorf("%s: %v", name, d)
			}
		}
	}
}

// The mistake that the README shows is reported as it says, in the catalogue that it shows.
func TestTheReadmesMistakeIsReportedLikeThat(t *testing.T) {
	t.Parallel()
	readme := readDoc(t, "README.md")
	mistaken := []byte(strings.Replace(example(t, readme, "yaml"), "key: order_id ",
		"key: order_idd", 1))
	_, list := Parse("outbox.yaml", mistaken)
	var b strings.Builder
	if err := diag.WriteText(&b, list, map[string][]byte{"outbox.yaml": mistaken}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(readme, "\n```\n"+b.String()+"```\n") {
		t.Errorf("the README lacks:\n%s", &b)
	}
}

// keyNames returns a table's keys: those that are compiled, or those that are not compiled yet.
func keyNames[T any](t table[T], compiled bool) []string {
	var names []string
	for _, k := range t.keys {
		if (k.kind != notYet) == compiled {
			names = append(names, k.name)
		}
	}
	return names
}

// names returns all that can be said, or all that cannot be said yet.
func names(compiled bool) []string {
	names := slices.Concat(
		keyNames(catalogueTable, compiled), keyNames(goTable, compiled),
		keyNames(databaseTable, compiled),
		keyNames(migrationsTable, compiled), keyNames(relayTable, compiled),
		keyNames(defaultsTable, compiled),
		keyNames(typeTable, compiled), keyNames(fieldTable, compiled),
		keyNames(eventTable, compiled), keyNames(consumerTable, compiled),
	)
	for _, c := range slices.Concat(engines, migrationFormats) {
		if c.notYet != compiled {
			names = append(names, c.value)
		}
	}
	if compiled {
		for _, s := range Scalars {
			names = append(names, string(s))
		}
	}
	return names
}

// words returns the words of a text that a pattern takes out of it.
func words(text, pattern string) map[string]bool {
	words := map[string]bool{}
	for _, part := range regexp.MustCompile(pattern).FindAllString(text, -1) {
		for _, word := range regexp.MustCompile(`[A-Za-z0-9_-]+`).FindAllString(part, -1) {
			words[word] = true
		}
	}
	return words
}

const inBackquotes = "`[^`\n]+`"

func TestTheReferenceNamesAllThatCanBeSaid(t *testing.T) {
	t.Parallel()
	doc := readDoc(t, "docs/catalogue.md")
	before, rest, found := strings.Cut(doc, "\n## Not supported yet\n")
	refused, after, found2 := strings.Cut(rest, "\n## ")
	if !found || !found2 {
		t.Fatal("there is no section on what is not supported yet")
	}
	said, notYet := words(before+after, inBackquotes), words(refused, inBackquotes)
	for _, name := range slices.Concat(names(true), methodNames, personalMethodNames) {
		if !said[name] {
			t.Errorf("docs/catalogue.md does not name %q", name)
		}
	}
	for _, name := range names(false) {
		if !notYet[name] {
			t.Errorf("docs/catalogue.md does not say that %q is not supported yet", name)
		}
	}
	for _, c := range slices.Concat(engines, migrationFormats) {
		if !c.notYet && notYet[c.value] {
			t.Errorf("docs/catalogue.md says that %q is not supported yet", c.value)
		}
	}
}

// What the goldens of gen/golang do not say is compiled by no test.
func TestTheGoldensSayAllThatCanBeSaidOfEvents(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../golang/testdata/*/outbox.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	var all strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	said := words(all.String(), `(?m)^[^#\n]*`)
	for _, name := range slices.Concat(keyNames(typeTable, true), keyNames(fieldTable, true),
		keyNames(eventTable, true), keyNames(consumerTable, true)) {
		if !said[name] {
			t.Errorf("no catalogue of gen/golang/testdata says %q", name)
		}
	}
}

// An engine that is supported by now is not refused as well.
func TestEveryChoiceIsOfferedOnce(t *testing.T) {
	t.Parallel()
	for _, choices := range [][]choice{engines, migrationFormats} {
		seen := map[string]bool{}
		for _, c := range choices {
			if seen[c.value] {
				t.Errorf("%s stands twice in %v", c.value, choices)
			}
			seen[c.value] = true
		}
	}
}
