// Package gen compiles a catalogue: load, check, emit, plan. It reads what it is given and changes nothing; package output brings
// the plan to disk.
package gen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/golang"
	"github.com/outboxgen/outboxgen/gen/lock"
	"github.com/outboxgen/outboxgen/gen/migrate"
	"github.com/outboxgen/outboxgen/gen/output"
	"github.com/outboxgen/outboxgen/gen/sqlc"
)

// Input is all that the output depends on.
type Input struct {
	File       string                           // what diagnostics call the catalogue; with slashes
	Data       []byte                           // the catalogue
	Dir        fs.FS                            // the catalogue's directory: its lock, its migrations, and what sqlc made before
	ImportPath func(dir string) (string, error) // of the package in a directory below that
	// Neighbours returns the other catalogues that may write into a directory below the catalogue's own.
	Neighbours func(dir string) ([]Neighbour, error)
	// SQLC compiles files, among which is its configuration, to Go files. It is called only if the SQL changed, or what was
	// made of it, or if it was not seen to make that. An error in the SQL is a *sqlc.CompileError.
	SQLC func(ctx context.Context, files map[string][]byte) (map[string][]byte, error)
	Seen sqlc.Seen // what SQLC was seen to make
}

// Result is what is to be on disk, and what is to be said of the catalogue.
type Result struct {
	Plan        output.Plan // empty if a diagnostic is an error
	Diagnostics diag.List
	Sources     map[string][]byte // the files that diagnostics point into, by the name they use
}

// Generate compiles a catalogue. The error is about everything but the catalogue: a broken lock, a sqlc that is missing.
func Generate(ctx context.Context, in Input) (Result, error) {
	r := Result{Sources: map[string][]byte{in.File: in.Data}}
	c, list := catalogue.Parse(in.File, in.Data)
	r.Diagnostics = list
	if c == nil {
		return r, nil
	}
	old, err := readLock(in)
	if err != nil {
		return r, err
	}
	g := &generator{Input: in, catalogue: c, old: old, next: lock.New(path.Base(in.File), c)}
	err = g.run(ctx)
	if g.explain(err, &r) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	r.Plan = g.plan
	r.Diagnostics.Add(g.orphans()...)
	r.Diagnostics.Add(g.notes...)
	return r, nil
}

// readLock reads what the last run knew. A directory holds one catalogue, or one would remove what the other has generated.
func readLock(in Input) (*lock.Lock, error) {
	data, err := fs.ReadFile(in.Dir, lock.Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", lock.Name, err)
	}
	old, err := lock.Parse(data)
	if err != nil {
		return nil, err
	}
	if name := path.Base(in.File); old.Catalogue != "" && old.Catalogue != name {
		return nil, fmt.Errorf("%s: it belongs to %s, and a directory holds one catalogue: move %s elsewhere; "+
			"or, where it is the same one renamed, change the name in the lock", lock.Name, old.Catalogue, name)
	}
	return old, nil
}

// generator collects the plan and the lock of one run.
type generator struct {
	Input
	catalogue *catalogue.Catalogue
	old, next *lock.Lock
	sqlFiles  map[string][]byte // what sqlc compiles, by name
	plan      output.Plan
	notes     diag.List // on what was not checked
}

func (g *generator) run(ctx context.Context) error {
	if err := g.checkNeighbours(); err != nil {
		return err
	}
	if err := g.addGo(); err != nil {
		return err
	}
	if err := g.checkEvents(); err != nil {
		return err
	}
	if err := g.addMigrations(); err != nil {
		return err
	}
	g.addAttributes()
	if err := g.addSQL(ctx); err != nil { // last, since it takes longest
		return err
	}
	if err := g.checkSQLC(); err != nil {
		return err
	}
	return g.finish()
}

func (g *generator) addGo() error {
	importPath, err := g.ImportPath(g.catalogue.Go.Dir)
	if err != nil {
		return err
	}
	files, err := golang.Emit(g.catalogue, importPath)
	if err != nil {
		return err
	}
	for _, f := range files {
		g.add(f.Path, f.Content, output.Marker)
	}
	return nil
}

func (g *generator) addMigrations() error {
	others, err := g.othersMigrations()
	if err != nil {
		return err
	}
	result, err := migrate.Plan(migrate.Input{
		Catalogue: g.catalogue, Dir: g.Dir, Known: g.old.Migrations, Database: g.old.Model.Database,
		Service: g.old.Model.Service, Others: others, Display: g.display,
	})
	g.plan.Files = append(g.plan.Files, result.Files...)
	g.plan.Stale = append(g.plan.Stale, result.Stale...)
	g.next.Migrations = result.Known
	return err
}

// add puts a file into the plan and into the manifest.
func (g *generator) add(name string, data []byte, marker string) {
	g.plan.Files = append(g.plan.Files, output.File{Path: name, Data: data, Marker: marker})
	g.next.Files[name] = output.Hash(data)
}

// finish adds what the last run generated and this one does not, and the lock.
func (g *generator) finish() error {
	slices.SortFunc(g.plan.Files, func(a, b output.File) int { return cmp.Compare(a.Path, b.Path) })
	for _, name := range sortedKeys(g.old.Files) {
		if _, ok := g.next.Files[name]; !ok {
			g.plan.Stale = append(g.plan.Stale, name)
		}
	}
	data, err := g.next.Encode()
	g.plan.Lock = output.File{Path: lock.Name, Data: data}
	return err
}

// orphans finds Go files that say they are generated, though neither this run nor the last knows them: a lock that was merged
// badly has lost them. Only a person can tell whether they may go.
func (g *generator) orphans() diag.List {
	var list diag.List
	names, _ := fs.Glob(g.Dir, path.Join(g.catalogue.Go.Dir, "*.gen.go")) // a pattern of names that were checked
	for _, name := range names {
		_, before := g.old.Files[name]
		_, now := g.next.Files[name]
		data, err := fs.ReadFile(g.Dir, name)
		if before || now || err != nil || !output.HasMarker(data, output.Marker) {
			continue
		}
		d := diag.New(diag.OutputOrphan, diag.Pos{File: g.display(name)}, "it says that outboxgen has generated it, but %s does not know it", lock.Name).
			WithHelp("delete it; or, where it is yours by now, the comment that says so")
		d.Severity = diag.Warning
		list.Add(d)
	}
	return list
}

// display is what diagnostics call a file of the catalogue's directory.
func (g *generator) display(name string) string { return path.Join(path.Dir(g.File), name) }

// explain turns errors that have a place in a file into diagnostics.
func (g *generator) explain(err error, r *Result) bool {
	var violation *migrate.Violation
	var compile *sqlc.CompileError
	var problems *problems
	switch {
	case errors.As(err, &problems):
		r.Diagnostics.Add(problems.list...)
		for name, data := range problems.sources {
			r.Sources[name] = data
		}
	case errors.As(err, &violation):
		r.Diagnostics.Add(violation.Diagnostic)
		for name, data := range violation.Sources {
			r.Sources[name] = data
		}
	case errors.As(err, &compile):
		for _, p := range compile.Problems {
			pos := diag.Pos{File: g.display(path.Join(g.sqlDir(), p.File)), Line: p.Line, Column: p.Column}
			r.Diagnostics.Add(diag.New(diag.SQLCompile, pos, "sqlc: %s", p.Message))
			r.Sources[pos.File] = g.sqlFiles[p.File]
		}
	default:
		return false
	}
	return true
}
