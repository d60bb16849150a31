// Package migrate finds the migrations that are missing, and renders them in the format of the
// team's migration tool.
//
// The statements of a migration that was written never change, since a database may have run them.
// The file may be moved, renamed, renumbered, commented, and written in another tool's format.
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

// Input is what a plan depends on.
type Input struct {
	Catalogue *catalogue.Catalogue
	Dir       fs.FS            // the catalogue's directory
	Known     []lock.Migration // written by earlier runs
	Database  lock.Database    // the database section that they were written for
	Service   string           // the service that the catalogue named then
	Others    []Other          // catalogues whose migrations are in the same directory
	Display   func(path string) string
}

// Other is another catalogue, as messages call it, and what its lock says of its migrations.
type Other struct {
	Catalogue  string
	Migrations []lock.Migration
}

// Result is the migrations that are to be on disk.
type Result struct {
	Files []output.File
	Stale []string         // where migrations were before they were moved
	Known []lock.Migration // for the lock
}

// Plan returns the migrations of a catalogue: those that exist, with the statements that they were
// written with, and those that are missing. The error is a *Violation if a migration no longer fits
// the catalogue, because either was changed.
func Plan(in Input) (Result, error) {
	p := &planner{Input: in}
	if err := p.addSteps(); err != nil {
		return Result{}, err
	}
	if in.Catalogue.Migrations.Dir == "" {
		return p.planNone()
	}
	if err := p.plan(); err != nil {
		return Result{}, err
	}
	return p.result, nil
}

// planner plans a catalogue's migrations, one after the other.
type planner struct {
	Input
	steps  []*step  // in the order in which they are applied
	others []*step  // of features that the catalogue does not have
	names  []string // of the files in the directory of migrations, and of those to be written
	files  []file   // those of them that contain SQL, and those in the lock that are elsewhere
	result Result
}

// addSteps renders the migrations that the catalogue needs, and finds their records in the lock.
func (p *planner) addSteps() error {
	c := *p.Catalogue
	if c.Migrations.Dir == "" {
		return nil
	}
	c.Database.Features = catalogue.Features()
	all, err := sql.Migrations(c.Database)
	if err != nil {
		return err
	}
	for _, m := range all {
		s, err := newStep(&c, m)
		if err != nil {
			return err
		}
		if !p.Catalogue.Database.Has(m.Feature) {
			p.others = append(p.others, s)
			continue
		}
		p.steps = append(p.steps, s)
	}
	for i, known := range p.Known {
		at := slices.IndexFunc(p.steps, func(s *step) bool {
			return s.Feature == known.Feature && s.Version == known.Version
		})
		if at < 0 {
			return fmt.Errorf("%s: it knows migrations of a newer outboxgen: install that one",
				lock.Name)
		}
		p.steps[at].known = &p.Known[i]
	}
	return nil
}

// planNone plans a catalogue that no longer has migrations. The names of the tables must not change
// as long as a migration that it had exists.
func (p *planner) planNone() (Result, error) {
	if len(p.Known) == 0 || p.Database == lock.Normalise(p.Catalogue).Database {
		return Result{Known: p.Known}, nil
	}
	for _, known := range p.Known {
		if _, err := p.readFile(known.File); !errors.Is(err, fs.ErrNotExist) {
			return Result{}, p.renamed(known.File)
		}
	}
	return Result{}, nil // somebody has deleted them, as the message asks for
}

func (p *planner) plan() error {
	var err error
	if p.names, err = list(p.Dir, p.Catalogue.Migrations.Dir); err != nil {
		return err
	}
	if p.files, err = p.read(); err != nil {
		return err
	}
	if err := p.checkForgotten(); err != nil {
		return err
	}
	for _, s := range p.steps {
		if err := p.planStep(s); err != nil {
			return err
		}
	}
	return nil
}

func (p *planner) planStep(s *step) error {
	f, err := p.locate(s)
	switch {
	case err != nil:
		return err
	case f == nil:
		p.write(s, p.newPath(s), s.text)
		return nil
	case output.Same(f.data, s.text):
		p.move(s, *f, f.data)
		return nil
	}
	if err := p.check(s, *f); err != nil {
		return err
	}
	if s.makesService() {
		if err := p.checkService(f.path); err != nil {
			return err
		}
	}
	if !p.holdsMore(s) && p.format(s, *f) != p.Catalogue.Migrations.Format {
		p.move(s, *f, s.text)
	} else {
		p.move(s, *f, f.data)
	}
	return nil
}

// makesService reports whether a migration records which service owns the tables.
func (s *step) makesService() bool {
	return s.Feature == catalogue.FeatureOutbox && s.Version == 1
}

// holdsMore reports whether a migration was written together with others, into one file, as was
// done before each feature had its own.
func (p *planner) holdsMore(s *step) bool {
	return s.known != nil && slices.ContainsFunc(p.steps, func(other *step) bool {
		return other != s && other.known != nil && other.known.File == s.known.File
	})
}

// newPath returns the path for a migration that is not on disk.
func (p *planner) newPath(s *step) string {
	name := next(p.names) + suffix(s.ID())
	if s.known != nil && !p.holdsMore(s) && !slices.Contains(p.names, path.Base(s.known.File)) {
		name = path.Base(s.known.File)
	}
	return path.Join(p.Catalogue.Migrations.Dir, name)
}

// move plans a migration that is on disk, perhaps in the directory that the catalogue named before.
func (p *planner) move(s *step, f file, data []byte) {
	to := path.Join(p.Catalogue.Migrations.Dir, path.Base(f.path))
	p.write(s, to, data)
	if to != f.path && !slices.Contains(p.result.Stale, f.path) {
		p.result.Stale = append(p.result.Stale, f.path)
	}
}

func (p *planner) write(s *step, to string, data []byte) {
	known := lock.Migration{
		Feature: s.Feature, Version: s.Version, File: to, Format: p.Catalogue.Migrations.Format,
		Hash: output.Hash(data), Statements: s.statements,
	}
	if p.holdsMore(s) && known.Hash == s.known.Hash {
		known.Format, known.Statements = s.known.Format, s.known.Statements
	}
	p.result.Known = append(p.result.Known, known)
	p.names = append(p.names, path.Base(to))
	if !slices.ContainsFunc(p.result.Files, func(f output.File) bool { return f.Path == to }) {
		p.result.Files = append(p.result.Files, output.File{Path: to, Data: data})
	}
}
