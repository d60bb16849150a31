// Package gen compiles a catalogue: load, check, emit, plan. It writes no files; package output
// carries out the plan.
package gen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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
	File string // the catalogue's path for diagnostics, with slashes
	Data []byte // the catalogue
	// Dir is the catalogue's directory, with its lock, its migrations, and the files that sqlc made
	// before.
	Dir fs.FS
	// ImportPath returns the import path of the package in a directory below Dir.
	ImportPath func(dir string) (string, error)
	// Neighbours returns the other catalogues that may write into a directory below the catalogue's
	// own.
	Neighbours func(dir string) ([]Neighbour, error)
	// SQLC compiles files, among which is its configuration, to Go files. It is called only if the
	// SQL changed, if the Go files did, or if Seen does not show that it made them. An error in the
	// SQL is a *sqlc.CompileError.
	SQLC func(ctx context.Context, files map[string][]byte) (map[string][]byte, error)
	Seen sqlc.Seen // what SQLC is known to have made
}

// Result is the files that are to be on disk, and the diagnostics about the catalogue.
type Result struct {
	Plan output.Plan // empty if a diagnostic, or anything else, is an error
	// Known is what files can be compared with: the plan or, if there is none, what is known in
	// spite of the errors.
	Known       output.Plan
	Diagnostics diag.List
	Sources     map[string][]byte // the files that diagnostics point into, by the name they use
}

// Generate compiles a catalogue. Problems of the catalogue are diagnostics; the error is about
// anything else, such as a broken lock or a missing sqlc.
func Generate(ctx context.Context, in Input) (Result, error) {
	r := Result{Sources: map[string][]byte{in.File: in.Data}}
	c, list := catalogue.Parse(in.File, in.Data)
	r.Diagnostics = list
	old, err := readLock(in)
	if c == nil {
		r.recallAll(old)
		return r, nil
	}
	if err != nil {
		return r, err
	}
	for _, m := range old.Migrations {
		c.Database.Keep(m.Feature)
	}
	g := &generator{
		Input: in, catalogue: c, old: old, next: lock.New(path.Base(in.File), c), result: &r,
	}
	g.plan.Sums = map[string]string{}
	err = g.run(ctx)
	switch {
	case r.Diagnostics.HasErrors():
		r.recallAll(old)
	case err != nil:
		r.Known = g.plan
	default:
		r.Plan, r.Known = g.plan, g.plan
		r.Diagnostics.Add(g.orphans()...)
	}
	return r, err
}

// recallAll serves a catalogue with errors: its files can be compared with what the last run
// generated.
func (r *Result) recallAll(old *lock.Lock) {
	if old != nil {
		r.Known.Sums = old.Files
	}
}

// readLock reads the lock of the last run. It returns an error if the lock belongs to another
// catalogue: two in one directory would remove each other's files.
func readLock(in Input) (*lock.Lock, error) {
	data, err := fs.ReadFile(in.Dir, lock.Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", lock.Name, output.Reason(err))
	}
	old, err := lock.Parse(data)
	if err != nil {
		return nil, err
	}
	if name := path.Base(in.File); old.Catalogue != "" && old.Catalogue != name {
		return nil, fmt.Errorf("%s: it belongs to %s, and a directory holds one catalogue: "+
			"move %s elsewhere; or, where it is the same one renamed, change the name in the lock",
			lock.Name, old.Catalogue, name)
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
	result    *Result // receives the diagnostics
	failed    error   // the errors of the steps so far that are no diagnostics
}

// run runs every step, even if one of them fails: the results of the others can still be compared
// with the disk.
func (g *generator) run(ctx context.Context) error {
	g.note(g.checkNeighbours())
	g.note(g.addGo())
	g.note(g.checkEvents())
	g.note(g.addMigrations())
	g.addAttributes()
	g.note(g.addSQL(ctx)) // last, since it takes longest
	g.note(g.checkSQLC())
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	g.note(g.finish())
	return g.failed
}

// note records the error of a step, if any: as diagnostics if possible.
func (g *generator) note(err error) {
	if err != nil && !g.explain(err, g.result) {
		g.failed = errors.Join(g.failed, err)
	}
}

// recall copies the hashes of the Go files in a directory from the last lock, since this run cannot
// make the files.
func (g *generator) recall(dir string) {
	for name, sum := range g.old.Files {
		if path.Dir(name) == dir && path.Ext(name) == ".go" {
			g.plan.Sums[name], g.next.Files[name] = sum, sum
		}
	}
}

func (g *generator) addGo() error {
	importPath, err := g.ImportPath(g.catalogue.Go.Dir)
	var files []golang.File
	if err == nil {
		files, err = golang.Emit(g.catalogue, importPath)
	}
	if err != nil {
		g.recall(g.catalogue.Go.Dir)
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
		g.next.Migrations = g.old.Migrations
		return err
	}
	result, err := migrate.Plan(migrate.Input{
		Catalogue: g.catalogue, Dir: g.Dir, Known: g.old.Migrations, Database: g.old.Model.Database,
		Service: g.old.Model.Service, Others: others, Display: g.display,
	})
	if err != nil {
		g.next.Migrations = g.old.Migrations
		return err
	}
	g.plan.Files = append(g.plan.Files, result.Files...)
	g.plan.Stale = append(g.plan.Stale, result.Stale...)
	g.next.Migrations = result.Known
	g.leaveOldPlaces()
	return nil
}

// leaveOldPlaces plans the removal of migrations from their old paths after a move that was
// interrupted.
func (g *generator) leaveOldPlaces() {
	for _, m := range g.old.Migrations {
		moved := len(g.next.Migrations) > 0 && !slices.ContainsFunc(g.next.Migrations,
			func(n lock.Migration) bool { return n.File == m.File })
		data, err := fs.ReadFile(g.Dir, m.File)
		if moved && err == nil && output.Hash(data) == m.Hash &&
			!slices.Contains(g.plan.Stale, m.File) {
			g.plan.Stale = append(g.plan.Stale, m.File)
		}
	}
}

// add puts a file into the plan and into the next lock.
func (g *generator) add(name string, data []byte, marker string) {
	g.plan.Files = append(g.plan.Files, output.File{Path: name, Data: data, Marker: marker})
	g.next.Files[name] = output.Hash(data)
}

// finish adds the lock to the plan, and the removal of files that only the last run generated.
func (g *generator) finish() error {
	slices.SortFunc(g.plan.Files, func(a, b output.File) int { return cmp.Compare(a.Path, b.Path) })
	for _, name := range sortedKeys(g.old.Files) {
		if _, ok := g.next.Files[name]; !ok {
			g.plan.Stale = append(g.plan.Stale, name)
		}
	}
	data, err := g.next.Encode()
	if err != nil {
		return err
	}
	g.plan.Lock = output.File{Path: lock.Name, Data: data}
	g.plan.Begun, err = g.begun().Encode()
	return err
}

// begun returns the lock that is on disk while the other files are being written. It is the lock of
// the last run with the new files added: if the run is killed and the catalogue changed before the
// next one, they are still known to be generated. So are the new places of migrations, which stand
// before the old ones: of two places of one migration, the last is where it was.
func (g *generator) begun() *lock.Lock {
	l := *g.next
	l.Model, l.Files = g.old.Model, maps.Clone(g.next.Files)
	l.Migrations = slices.Clone(g.old.Migrations)
	for _, m := range slices.Backward(g.next.Migrations) {
		isOld := func(o lock.Migration) bool {
			return o.Feature == m.Feature && o.Version == m.Version && o.File != m.File
		}
		if slices.ContainsFunc(g.old.Migrations, isOld) {
			l.Migrations = slices.Insert(l.Migrations, 0, m)
		}
	}
	maps.Copy(l.Files, g.old.Files)
	if g.old.SQL != g.next.SQL {
		l.SQL = "" // the files that sqlc made may be those of either run
	}
	return &l
}

// orphans returns a warning for each Go file that has the marker of generated files although
// neither this run nor the last generated it, which happens after a bad merge of the lock. Only a
// person can tell whether it may be deleted.
func (g *generator) orphans() diag.List {
	var list diag.List
	// The pattern is valid, since the directory's name was checked.
	names, _ := fs.Glob(g.Dir, path.Join(g.catalogue.Go.Dir, "*.gen.go"))
	for _, name := range names {
		_, before := g.old.Files[name]
		_, now := g.next.Files[name]
		data, err := fs.ReadFile(g.Dir, name)
		if before || now || err != nil || !output.HasMarker(data, output.Marker) {
			continue
		}
		d := diag.New(diag.OutputOrphan, diag.Pos{File: g.display(name)},
			"it says that outboxgen has generated it, but %s does not know it", lock.Name).
			WithHelp("delete it; or, where it is yours by now, the comment that says so")
		d.Severity = diag.Warning
		list.Add(d)
	}
	return list
}

// display returns the path that diagnostics show for a file of the catalogue's directory.
func (g *generator) display(name string) string { return path.Join(path.Dir(g.File), name) }

// explain adds diagnostics for an error that has a position in a file, and reports whether it did.
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
			file := g.display(path.Join(g.sqlDir(), p.File))
			pos := diag.Pos{File: file, Line: p.Line, Column: p.Column}
			r.Diagnostics.Add(diag.New(diag.SQLCompile, pos, "sqlc: %s", p.Message))
			r.Sources[pos.File] = g.sqlFiles[p.File]
		}
	default:
		return false
	}
	return true
}
