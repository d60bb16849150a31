package dialect_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/outboxgen/outboxgen/gen/dialect"
)

func TestEveryDialectIsWhole(t *testing.T) {
	t.Parallel()
	engines := dialect.Engines()
	if len(engines) == 0 ||
		len(slices.Compact(slices.Sorted(slices.Values(engines)))) != len(engines) {
		t.Fatalf("got engines %q", engines)
	}
	for _, engine := range engines {
		d := dialect.Of(engine)
		if d.Engine != engine || d.Name == "" {
			t.Errorf("%s: got %q, %q", engine, d.Engine, d.Name)
		}
		if d.MaxPrefix <= 0 || d.MaxPrefix >= d.MaxIdentifier {
			t.Errorf("%s: a prefix may have %d bytes of %d", engine, d.MaxPrefix, d.MaxIdentifier)
		}
		if !d.Reserved["select"] || d.Reserved["messaging"] || d.IsSystem("messaging") {
			t.Errorf("%s: select is no keyword, or messaging cannot be a schema", engine)
		}
		if d.Tx.Path == "" || d.Tx.Package == "" || d.Tx.Name == "" {
			t.Errorf("%s: got transaction %+v", engine, d.Tx)
		}
		for word := range d.Reserved {
			if word != strings.ToLower(word) {
				t.Errorf("%s: %q is not in lower case", engine, word)
			}
		}
	}
}

func TestAnUnknownEngineHasNoDialect(t *testing.T) {
	t.Parallel()
	if d := dialect.Of("oracle"); d != nil {
		t.Errorf("got %+v", d)
	}
}

func TestPostgreSQLQuotesWhateverATextHolds(t *testing.T) {
	t.Parallel()
	d := dialect.Of("postgresql")
	for _, c := range []struct{ got, want string }{
		{d.Quote(`a"b'c\`), `"a""b'c\"`},
		{d.Literal(`a"b'c\`), `'a"b''c\'`},
		{d.Quote(""), `""`},
		{d.Literal("''"), `''''''`},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
	if !d.IsSystem("pg_toast") || !d.IsSystem("information_schema") || d.IsSystem("pgx") {
		t.Error("the schemas of the system are pg_… and information_schema")
	}
	if a, b := d.LockKey("outbox/inbox"), d.LockKey("b_outbox/inbox"); a == b ||
		a != d.LockKey("outbox/inbox") {
		t.Errorf("got lock keys %s and %s", a, b)
	}
}
