package catalogue_test

import (
	"os"
	"strings"
	"testing"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/diag"
)

func TestWholeLanguageParsesWithoutADiagnostic(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/whole.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, list := catalogue.Parse("whole.yaml", data)
	if len(list) > 0 || c == nil {
		var b strings.Builder
		if err := diag.WriteText(&b, list, map[string][]byte{"whole.yaml": data}); err != nil {
			t.Fatal(err)
		}
		t.Fatalf("got a catalogue %v and diagnostics:\n%s", c != nil, b.String())
	}
}
