package scenario

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	language "github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/diag"
)

func TestCataloguesAreSoundAndOfTheirSize(t *testing.T) {
	t.Parallel()
	for _, n := range []int{125, 500, 2000} {
		c, problems := language.Parse("outbox.yaml", []byte(catalogue(n, 1)))
		problems = slices.DeleteFunc(problems, func(d diag.Diagnostic) bool {
			return d.Severity == diag.Info
		})
		if c == nil || len(problems) > 0 {
			t.Errorf("%d events: %v", n, problems)
			continue
		}
		if len(c.Events) != n || len(c.Types) != typesFor(n) {
			t.Errorf("got %d events and %d types, want %d and %d", len(c.Events), len(c.Types), n,
				typesFor(n))
		}
	}
}

func TestEditionsDifferInSomeEvents(t *testing.T) {
	t.Parallel()
	one, other := strings.Split(catalogue(125, 1), "\n"), strings.Split(catalogue(125, 2), "\n")
	if len(one) != len(other) {
		t.Fatalf("%d lines became %d", len(one), len(other))
	}
	changed := 0
	for i := range one {
		if one[i] != other[i] {
			changed++
		}
	}
	if changed != editedEvents {
		t.Errorf("got %d lines that differ, want %d", changed, editedEvents)
	}
}

func TestAProgramThatFailsIsAnErrorWithWhatItSaid(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if _, err := runProgram(ctx, "", "go", "no-such-command"); err == nil ||
		!strings.Contains(err.Error(), "unknown command") {
		t.Errorf("got %v, want what go said", err)
	}
	r, err := runProgram(ctx, "", "go", "env", "GOVERSION")
	if err != nil || !strings.HasPrefix(r.output, "go1") || r.elapsed <= 0 {
		t.Errorf("got %+v and error %v", r, err)
	}
}
