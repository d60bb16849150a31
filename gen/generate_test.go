package gen_test

import (
	"context"
	"errors"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/outboxgen/outboxgen/gen"
	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/output"
	"github.com/outboxgen/outboxgen/gen/sqlc"
)

const whole = `outboxgen: 1
service: shop/orders
go: {package: events, dir: internal/events}
database: {engine: postgresql}
migrations: {dir: db, format: goose}
defaults: {topic: shop.orders}
events:
  order.placed@1: {doc: An order was accepted., payload: {order_id: uuid}}
`

func input(data string, sqlcFunc func(map[string][]byte) (map[string][]byte, error)) gen.Input {
	return gen.Input{
		File: "svc/outbox.yaml", Data: []byte(data), Dir: fstest.MapFS{},
		ImportPath: func(dir string) (string, error) { return path.Join("x.test/svc", dir), nil },
		SQLC: func(_ context.Context, files map[string][]byte) (map[string][]byte, error) {
			return sqlcFunc(files)
		},
	}
}

func compiled(map[string][]byte) (map[string][]byte, error) {
	return map[string][]byte{"db.go": []byte("// " + output.MarkerSQLC + "\n")}, nil
}

func TestEveryGeneratedFileSaysSo(t *testing.T) {
	t.Parallel()
	r, err := gen.Generate(t.Context(), input(whole, compiled))
	if err != nil || r.Diagnostics.HasErrors() {
		t.Fatalf("got error %v and %v", err, r.Diagnostics)
	}
	for _, f := range r.Plan.Files {
		if !output.HasMarker(f.Data, output.Marker) &&
			!output.HasMarker(f.Data, output.MarkerSQLC) {
			t.Errorf("%s has no marker", f.Path)
		}
	}
	if !strings.HasSuffix(string(r.Plan.Lock.Data), "}\n") || r.Plan.Lock.Path != "outboxgen.lock" {
		t.Errorf("got lock %+v", r.Plan.Lock)
	}
}

func TestTwoRunsAreTheSame(t *testing.T) {
	t.Parallel()
	one, err1 := gen.Generate(t.Context(), input(whole, compiled))
	other, err2 := gen.Generate(t.Context(), input(whole, compiled))
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if len(one.Plan.Files) != len(other.Plan.Files) ||
		string(one.Plan.Lock.Data) != string(other.Plan.Lock.Data) {
		t.Fatal("the plans differ")
	}
	for i, f := range one.Plan.Files {
		if g := other.Plan.Files[i]; f.Path != g.Path || string(f.Data) != string(g.Data) {
			t.Errorf("%s and %s differ", f.Path, g.Path)
		}
	}
}

func TestAFailureLeavesNoPlan(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	r, err := gen.Generate(t.Context(), input(whole,
		func(map[string][]byte) (map[string][]byte, error) { return nil, broken }))
	if !errors.Is(err, broken) || len(r.Plan.Files) != 0 {
		t.Errorf("got error %v and %d files", err, len(r.Plan.Files))
	}
	r, err = gen.Generate(t.Context(), input(whole+"  order: {}\n", compiled))
	if err != nil || !r.Diagnostics.HasErrors() || len(r.Plan.Files) != 0 {
		t.Errorf("got error %v, %d files, %v", err, len(r.Plan.Files), r.Diagnostics)
	}
}

func TestErrorsOfSQLCPointIntoTheGeneratedSQL(t *testing.T) {
	t.Parallel()
	r, err := gen.Generate(t.Context(), input(whole,
		func(map[string][]byte) (map[string][]byte, error) {
			return nil, &sqlc.CompileError{Problems: []sqlc.Problem{{File: "schema.sql", Line: 4,
				Column: 2, Message: "no"}}}
		}))
	if err != nil || len(r.Plan.Files) != 0 {
		t.Fatalf("got error %v and %d files", err, len(r.Plan.Files))
	}
	want := diag.Pos{File: "svc/internal/events/outboxdb/schema.sql", Line: 4, Column: 2}
	last := r.Diagnostics[len(r.Diagnostics)-1]
	if last.Pos != want || last.Rule != diag.SQLCompile || r.Sources[want.File] == nil {
		t.Errorf("got %+v, want it at %+v", last, want)
	}
}

func TestServiceOf(t *testing.T) {
	t.Parallel()
	for importPath, want := range map[string]string{
		"github.com/acme/orders": "acme/orders", "example.org/orders": "orders", "orders": "orders",
		"github.com/acme/orders/v2":             "acme/orders",
		"github.com/acme/mono/services/billing": "services/billing",
		"example.org":                           "example.org", "corp/team/app": "team/app",
	} {
		if got := gen.ServiceOf(importPath); got != want {
			t.Errorf("%s: got %q, want %q", importPath, got, want)
		}
	}
}
