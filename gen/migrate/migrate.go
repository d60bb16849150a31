// Package migrate says which migrations are missing, and writes them in the format of the team's
// migration tool.
//
// A migration that was written once is never changed: a database may have run it. It may be moved,
// renamed, renumbered, commented, and written in another tool's format, since none of that changes
// what it does.
package migrate

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/lock"
	"github.com/outboxgen/outboxgen/gen/output"
	"github.com/outboxgen/outboxgen/gen/sql"
)

// SchemaVersion is the version of the tables that the templates make.
const SchemaVersion = 1

// Input is what a plan depends on.
type Input struct {
	Catalogue *catalogue.Catalogue
	Dir       fs.FS            // the catalogue's directory
	Known     []lock.Migration // written by earlier runs
	Database  lock.Database    // that they were written for
	Service   string           // that the catalogue named then
	Others    []Other          // catalogues whose migrations stand in the same directory
	Display   func(path string) string
}

// Other is another catalogue, as messages call it, and what its lock says of its migrations.
type Other struct {
	Catalogue  string
	Migrations []lock.Migration
}

// Result is the migrations that are to stand on disk.
type Result struct {
	Files []output.File
	Stale []string         // where a migration was before it was moved
	Known []lock.Migration // for the lock
}

// Plan returns the migrations of a catalogue. It is a *Violation if the tables changed under a
// migration, or the migration under the tables.
func Plan(in Input) (Result, error) {
	if len(in.Known) > 1 || len(in.Known) == 1 && in.Known[0].SchemaVersion > SchemaVersion {
		return Result{}, fmt.Errorf("%s: it knows migrations of a newer outboxgen: install that one", lock.Name)
	}
	p := planner{Input: in}
	if len(in.Known) == 1 {
		p.known = &in.Known[0]
	}
	if in.Catalogue.Migrations.Dir == "" {
		return p.planNone()
	}
	return p.plan()
}

// planner plans one migration: the one that makes the tables.
type planner struct {
	Input
	known      *lock.Migration
	text       []byte // what would be written now
	statements string // its hash
	down       []byte // what undoes it, bare
}

// planNone is for a catalogue that has no migrations any more. The one that it had keeps its
// tables' names.
func (p *planner) planNone() (Result, error) {
	if p.known == nil || p.Database == lock.Normalise(p.Catalogue).Database {
		return Result{Known: p.Known}, nil
	}
	if _, err := p.readFile(p.known.File); errors.Is(err, fs.ErrNotExist) {
		return Result{}, nil // somebody has deleted it, as the message asks for
	}
	return Result{}, p.renamed(p.known.File)
}

func (p *planner) plan() (Result, error) {
	var err error
	if p.text, p.statements, err = render(p.Catalogue); err != nil {
		return Result{}, err
	}
	if p.down, err = sql.Drop(p.Catalogue.Database); err != nil {
		return Result{}, err
	}
	names, err := list(p.Dir, p.Catalogue.Migrations.Dir)
	if err != nil {
		return Result{}, err
	}
	f, err := p.locate(names)
	switch {
	case err != nil:
		return Result{}, err
	case f == nil:
		return p.write(p.newPath(names), p.text), nil
	case output.Same(f.data, p.text):
		return p.move(*f, f.data), nil
	}
	if err := p.check(*f); err != nil {
		return Result{}, err
	}
	if err := p.checkService(f.path, names); err != nil {
		return Result{}, err
	}
	if p.format(*f) != p.Catalogue.Migrations.Format {
		return p.move(*f, p.text), nil
	}
	return p.move(*f, f.data), nil
}

// locate finds the migration on disk by what it contains, or else a file that was the migration
// before it was edited. It returns nil if there is neither.
func (p *planner) locate(names []string) (*file, error) {
	files, err := p.read(names)
	if err != nil {
		return nil, err
	}
	var ours, edited []file
	for _, f := range files {
		if owner, same := p.owner(f); owner != "" {
			if same {
				return nil, p.shared(f, owner)
			}
			continue
		}
		switch {
		case p.isOurs(f):
			ours = append(ours, f)
		case p.looksLikeOurs(f):
			edited = append(edited, f)
		}
	}
	all := append(p.inPlaceFirst(ours), p.inPlaceFirst(edited)...)
	for _, f := range all[min(1, len(all)):] {
		if path.Dir(f.path) == path.Clean(p.Catalogue.Migrations.Dir) &&
			(p.isOurs(f) || p.makesTables(f)) {
			return nil, p.twice(all[0], f)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	return &all[0], nil
}

// inPlaceFirst puts the file where the migration belongs before the others.
func (p *planner) inPlaceFirst(files []file) []file {
	if p.known == nil {
		return files
	}
	place := path.Join(p.Catalogue.Migrations.Dir, path.Base(p.known.File))
	at := slices.IndexFunc(files, func(f file) bool { return f.path == place })
	if at < 0 {
		return files
	}
	return slices.Concat(files[at:at+1], files[:at], files[at+1:])
}

// newPath is where a migration goes that is not on disk.
func (p *planner) newPath(names []string) string {
	name := next(names) + suffix
	if p.known != nil && !slices.Contains(names, path.Base(p.known.File)) {
		name = path.Base(p.known.File)
	}
	return path.Join(p.Catalogue.Migrations.Dir, name)
}

// move returns the plan for a migration that stands at a path, which may be in the directory that
// the catalogue named before.
func (p *planner) move(f file, data []byte) Result {
	to := path.Join(p.Catalogue.Migrations.Dir, path.Base(f.path))
	result := p.write(to, data)
	if to != f.path {
		result.Stale = []string{f.path}
	}
	return result
}

func (p *planner) write(to string, data []byte) Result {
	return Result{
		Files: []output.File{{Path: to, Data: data}},
		Known: []lock.Migration{{
			File: to, SchemaVersion: SchemaVersion, Format: p.Catalogue.Migrations.Format,
			Hash: output.Hash(data), Statements: p.statements,
		}},
	}
}
