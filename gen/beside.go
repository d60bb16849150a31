package gen

import (
	"fmt"
	"path"

	"github.com/outboxgen/outboxgen/gen/beside"
	"github.com/outboxgen/outboxgen/gen/output"
	"github.com/outboxgen/outboxgen/gen/sql"
)

// checkEvents looks at the team's own files beside the generated events.
func (g *generator) checkEvents() error {
	return g.checkBeside(g.catalogue.Go.Dir, g.catalogue.Go.Package, func(name string) string {
		if name == "main" {
			return "choose a go.dir of its own: a command cannot be imported"
		}
		return fmt.Sprintf(
			"choose another go.dir, or write package: %s under go, or move this file", name,
		)
	})
}

// checkSQLC looks at files beside what sqlc has made.
func (g *generator) checkSQLC() error {
	return g.checkBeside(g.sqlDir(), sql.Package,
		func(string) string { return "move this file: the directory is sqlc's" })
}

func (g *generator) checkBeside(dir, name string, mend func(string) string) error {
	files := map[string][]byte{}
	for _, f := range g.plan.Files {
		if path.Dir(f.Path) == dir {
			files[path.Base(f.Path)] = f.Data
		}
	}
	list, sources := beside.Check(g.Dir, beside.Package{
		Name: name, Dir: dir, Files: files, Removed: g.isRemoved, Display: g.display,
		OtherPackage: mend,
	})
	if len(list) == 0 {
		return nil
	}
	return &problems{list: list, sources: sources}
}

// isRemoved reports whether this run will remove a file: an earlier run wrote it, and its marker is
// still there.
func (g *generator) isRemoved(name string, data []byte) bool {
	_, before := g.old.Files[name]
	_, now := g.next.Files[name]
	return before && !now &&
		(output.HasMarker(data, output.Marker) || output.HasMarker(data, output.MarkerSQLC))
}
