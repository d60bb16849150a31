package gen

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"

	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/lock"
	"github.com/outboxgen/outboxgen/gen/migrate"
	"github.com/outboxgen/outboxgen/gen/output"
	"github.com/outboxgen/outboxgen/gen/sql"
)

// Neighbour is another catalogue of the repository.
type Neighbour struct {
	Catalogue string // its file, as messages call it
	Lock      *lock.Lock
	// Has reports whether the neighbour's directory theirs is the catalogue's directory ours. Each
	// is relative to its own catalogue.
	Has func(theirs, ours string) bool
}

// problems are diagnostics that are returned as an error.
type problems struct {
	list    diag.List
	sources map[string][]byte
}

func (p *problems) Error() string { return fmt.Sprintf("%d problems", len(p.list)) }

// checkNeighbours refuses to generate into a directory that another catalogue generates into: the
// two would overwrite each other's files at every run.
func (g *generator) checkNeighbours() error {
	ours := []string{g.catalogue.Go.Dir, g.sqlDir()}
	neighbours, err := g.neighbours(g.sqlDir())
	if err != nil {
		return err
	}
	for _, n := range neighbours {
		theirs := n.Lock.Model.Go.Dir
		for _, dir := range []string{theirs, path.Join(theirs, sql.Package)} {
			i := slices.IndexFunc(ours,
				func(our string) bool { return theirs != "" && n.Has(dir, our) })
			if i < 0 {
				continue
			}
			d := diag.New(diag.OutputShared, g.catalogue.Go.Pos, "%s generates into %s, too",
				n.Catalogue, g.display(ours[i])).
				WithHelp("choose another go.dir for one of the two; if it is %s that has moved "+
					"away, generate it first", n.Catalogue)
			return &problems{list: diag.List{d}}
		}
	}
	return g.checkStranger()
}

var serviceConstant = regexp.MustCompile(`(?m)^\tService += (".*")$`)

// checkStranger refuses to overwrite the package of another service that no lock knows: that
// service's lock may not be committed, or be in another place. If the lock of this catalogue was
// lost, the package is this service's own, and may be overwritten.
func (g *generator) checkStranger() error {
	name := path.Join(g.catalogue.Go.Dir, "outbox.gen.go")
	data, err := fs.ReadFile(g.Dir, name)
	_, known := g.old.Files[name]
	if err != nil || known || !output.HasMarker(data, output.Marker) {
		return nil
	}
	m := serviceConstant.FindSubmatch(data)
	if m == nil || string(m[1]) == strconv.Quote(g.catalogue.Service) {
		return nil
	}
	d := diag.New(diag.OutputShared, g.catalogue.Go.Pos, "%s was generated for another service, %s",
		g.display(name), m[1]).
		WithHelp("choose another go.dir; if it is this catalogue's of before, delete it")
	return &problems{list: diag.List{d}}
}

// othersMigrations returns the catalogues that have migrations in the catalogue's directory of
// them.
func (g *generator) othersMigrations() ([]migrate.Other, error) {
	dir := g.catalogue.Migrations.Dir
	if dir == "" {
		return nil, nil
	}
	neighbours, err := g.neighbours(dir)
	var others []migrate.Other
	for _, n := range neighbours {
		other := migrate.Other{Catalogue: n.Catalogue}
		for _, m := range n.Lock.Migrations {
			if n.Has(path.Dir(m.File), dir) {
				other.Migrations = append(other.Migrations, m)
			}
		}
		others = append(others, other)
	}
	return others, err
}

func (g *generator) neighbours(dir string) ([]Neighbour, error) {
	if g.Neighbours == nil {
		return nil, nil
	}
	return g.Neighbours(dir)
}
