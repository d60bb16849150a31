package gen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/outboxgen/outboxgen/gen/output"
	"github.com/outboxgen/outboxgen/gen/sql"
)

// sqlDir returns the directory of the SQL and of the package that sqlc makes of it.
func (g *generator) sqlDir() string { return path.Join(g.catalogue.Go.Dir, sql.Package) }

// addSQL adds the SQL, and what sqlc makes of it.
func (g *generator) addSQL(ctx context.Context) error {
	rendered, err := sql.Render(g.catalogue.Database, g.catalogue.Service)
	if err != nil {
		return err
	}
	g.sqlFiles = rendered.ByName()
	g.next.SQL = hashAll(g.sqlFiles)
	for _, name := range sortedKeys(g.sqlFiles) {
		g.add(path.Join(g.sqlDir(), name), g.sqlFiles[name], output.Marker)
	}
	compiled, ok, err := g.compiledBefore()
	switch sound := g.failed == nil && !g.result.Diagnostics.HasErrors(); {
	case err != nil || !sound:
	case ok:
		compiled, err = g.verify(ctx, compiled)
	default:
		compiled, err = g.compile(ctx)
		ok = err == nil
	}
	if err != nil || !ok {
		g.recall(g.sqlDir())
		return err
	}
	for _, name := range sortedKeys(compiled) {
		g.add(path.Join(g.sqlDir(), name), compiled[name], g.markerOfCompiled(name))
	}
	return nil
}

// compiledBefore returns what sqlc made in an earlier run, if the SQL is the same and all of it is
// on disk unchanged.
func (g *generator) compiledBefore() (map[string][]byte, bool, error) {
	if g.old.SQL != g.next.SQL {
		return nil, false, nil
	}
	compiled := map[string][]byte{}
	for name, hash := range g.old.Files {
		if path.Dir(name) != g.sqlDir() || path.Ext(name) != ".go" {
			continue
		}
		data, err := fs.ReadFile(g.Dir, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, false, fmt.Errorf("%s: %w", g.display(name), output.Reason(err))
		}
		if err != nil || output.Hash(data) != hash {
			return nil, false, nil
		}
		compiled[path.Base(name)] = data
	}
	return compiled, len(compiled) > 0, nil
}

// markerOfCompiled returns the marker that one of sqlc's files must have to be overwritten: none if
// the lock says that it is generated.
func (g *generator) markerOfCompiled(name string) string {
	if _, known := g.old.Files[path.Join(g.sqlDir(), name)]; known {
		return ""
	}
	return output.MarkerSQLC
}

// addAttributes adds a .gitattributes, so that reviews fold what is generated. One that the team
// wrote is left alone.
func (g *generator) addAttributes() {
	name := path.Join(g.catalogue.Go.Dir, ".gitattributes")
	if data, err := fs.ReadFile(g.Dir, name); err == nil && !output.HasMarker(data, output.Marker) {
		return
	}
	lines := []string{
		"# " + output.Marker,
		"*.gen.go linguist-generated",
		"/" + sql.Package + "/** linguist-generated",
	}
	g.add(name, []byte(strings.Join(lines, "\n")+"\n"), output.Marker)
}

// hashAll identifies files together with their names.
func hashAll(files map[string][]byte) string {
	var all bytes.Buffer
	for _, name := range sortedKeys(files) {
		fmt.Fprintf(&all, "%s %s\n", name, output.Hash(files[name]))
	}
	return output.Hash(all.Bytes())
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
