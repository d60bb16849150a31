package golang

import (
	"slices"
	"testing"

	"github.com/outboxgen/outboxgen/gen/catalogue"
)

// Who adds a scalar type to one of the two tables has to add it to the other, with all that its row
// there promises.
func TestTheTablesOfScalarsAgree(t *testing.T) {
	t.Parallel()
	for s, row := range scalars {
		if !slices.Contains(catalogue.Scalars, s) {
			t.Errorf("%s: the catalogue has no such type", s)
		}
		if row.goType == nil {
			t.Errorf("%s has no type in Go", s)
		}
		if isKey := row.keyText != nil; isKey != s.IsKey() {
			t.Errorf("%s has a key's text: %t; can be a key: %t", s, isKey, s.IsKey())
		}
		if hasLength := row.length != ""; hasLength != s.Takes("min_length") {
			t.Errorf("%s has a check of its length: %t; min_length fits it: %t",
				s, hasLength, s.Takes("min_length"))
		}
	}
	for _, s := range catalogue.Scalars {
		if _, ok := scalars[s]; !ok {
			t.Errorf("%s has no row in Go", s)
		}
	}
}

// jennifer's statements grow by what is added to them, so that each use of a row needs its own.
func TestARowOfScalarsMakesItsStatementsAfresh(t *testing.T) {
	t.Parallel()
	for s, row := range scalars {
		want := row.goType().GoString()
		row.goType().Dot("Other")
		if got := row.goType().GoString(); got != want || want == "" {
			t.Errorf("%s is %q in Go, and %q the second time", s, want, got)
		}
	}
}
