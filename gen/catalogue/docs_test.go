package catalogue

import (
	"os"
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
	mistaken := []byte(strings.Replace(example(t, readme, "yaml"), "key: order_id ", "key: order_idd", 1))
	_, list := Parse("outbox.yaml", mistaken)
	var b strings.Builder
	if err := diag.WriteText(&b, list, map[string][]byte{"outbox.yaml": mistaken}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(readme, "\n```\n"+b.String()+"```\n") {
		t.Errorf("the README lacks:\n%s", &b)
	}
}

// keyNames returns all keys of a table, those that are not compiled yet among them.
func keyNames[T any](t table[T]) []string {
	var names []string
	for _, k := range t.keys {
		names = append(names, k.name)
	}
	return names
}

func TestTheReferenceNamesAllThatCanBeSaid(t *testing.T) {
	t.Parallel()
	said := map[string]bool{}
	for _, code := range regexp.MustCompile("`[^`\n]+`").FindAllString(readDoc(t, "docs/catalogue.md"), -1) {
		for _, word := range regexp.MustCompile(`[A-Za-z0-9_-]+`).FindAllString(code, -1) {
			said[word] = true
		}
	}
	want := slices.Concat(
		keyNames(catalogueTable), keyNames(goTable), keyNames(databaseTable), keyNames(migrationsTable), keyNames(relayTable),
		keyNames(defaultsTable), keyNames(typeTable), keyNames(fieldTable), keyNames(eventTable), keyNames(consumerTable),
		methodNames, personalMethodNames,
	)
	for _, s := range scalars {
		want = append(want, string(s))
	}
	for _, c := range slices.Concat(engines, migrationFormats) {
		want = append(want, c.value)
	}
	for _, name := range want {
		if !said[name] {
			t.Errorf("docs/catalogue.md does not name %q", name)
		}
	}
}
