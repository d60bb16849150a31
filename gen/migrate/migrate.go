// Package migrate says which migrations are missing, and writes them in the format of the team's migration tool.
//
// A migration that was written once is never changed: a database may have run it. It may be moved, renumbered, and written in
// another tool's format, since none of that changes what it does.
package migrate

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/lock"
	"github.com/outboxgen/outboxgen/gen/output"
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
	Display   func(path string) string
}

// Result is the migrations that are to stand on disk.
type Result struct {
	Files []output.File
	Stale []string         // where a migration was before it was moved
	Known []lock.Migration // for the lock
}

// Plan returns the migrations of a catalogue. It is a *Violation where the tables changed under a migration, or the migration
// under the tables.
func Plan(in Input) (Result, error) {
	if len(in.Known) > 1 || len(in.Known) == 1 && in.Known[0].SchemaVersion > SchemaVersion {
		return Result{}, fmt.Errorf("%s: it knows migrations of a newer outboxgen: install that one", lock.Name)
	}
	if in.Catalogue.Migrations.Dir == "" {
		return Result{Known: in.Known}, nil
	}
	p := planner{Input: in}
	if len(in.Known) == 1 {
		p.known = &in.Known[0]
	}
	return p.plan()
}

// planner plans one migration: the one that makes the tables.
type planner struct {
	Input
	known      *lock.Migration
	text       []byte // what would be written now
	statements string // its hash
}

func (p *planner) plan() (Result, error) {
	var err error
	if p.text, p.statements, err = render(p.Catalogue); err != nil {
		return Result{}, err
	}
	names, err := list(p.Dir, p.Catalogue.Migrations.Dir)
	if err != nil {
		return Result{}, err
	}
	at, data, err := p.locate(names)
	if err != nil {
		return Result{}, err
	}
	if data == nil {
		return p.write(p.newPath(names), p.text), nil
	}
	if output.Same(data, p.text) {
		return p.move(at, data), nil
	}
	if err := p.check(at, data); err != nil {
		return Result{}, err
	}
	if err := p.checkService(at, names); err != nil {
		return Result{}, err
	}
	if p.known.Format != p.Catalogue.Migrations.Format {
		return p.move(at, p.text), nil
	}
	return p.move(at, data), nil
}

// locate finds the migration on disk: where it belongs, where it was, or under a new number.
func (p *planner) locate(names []string) (at string, data []byte, err error) {
	var places []string
	if p.known != nil {
		places = append(places, path.Join(p.Catalogue.Migrations.Dir, path.Base(p.known.File)), p.known.File)
	}
	for _, name := range names {
		if isOurs(name) {
			places = append(places, path.Join(p.Catalogue.Migrations.Dir, name))
		}
	}
	for _, at := range places {
		data, err := fs.ReadFile(p.Dir, at)
		if err == nil {
			return at, data, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", nil, fmt.Errorf("migrations: %w", err)
		}
	}
	return "", nil, nil
}

// newPath is where a migration goes that is not on disk.
func (p *planner) newPath(names []string) string {
	name := next(names) + suffix
	if p.known != nil {
		name = path.Base(p.known.File)
	}
	return path.Join(p.Catalogue.Migrations.Dir, name)
}

// move returns the plan for a migration that stands at a path, which may be in the directory that the catalogue named before.
func (p *planner) move(at string, data []byte) Result {
	to := path.Join(p.Catalogue.Migrations.Dir, path.Base(at))
	result := p.write(to, data)
	if to != at {
		result.Stale = []string{at}
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
