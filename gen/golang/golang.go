// Package golang turns a catalogue into Go.
//
// One file of this package holds one construct: events, consumers, the store and so on. Every
// function that makes Go shows in its comment what it makes. Nothing is decided here about the
// catalogue, and nothing is written to disk.
package golang

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/dave/jennifer/jen"
	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/dialect"
)

// File is a generated file.
type File struct {
	Path    string // relative to the catalogue's directory, with slashes
	Content []byte
}

// Emit returns the Go files of a catalogue, in an order that is always the same. importPath is that
// of the package they form; the package that sqlc makes of the queries is outboxdb below it.
func Emit(c *catalogue.Catalogue, importPath string) ([]File, error) {
	engine := dialect.Of(c.Database.Engine)
	if engine == nil {
		return nil, fmt.Errorf("golang: there is no dialect of engine %q", c.Database.Engine)
	}
	g := &generator{
		catalogue:  c,
		dialect:    engine,
		importPath: importPath,
		patterns:   namePatterns(c),
	}
	files, err := g.renderAll(g.sources())
	if err != nil {
		return nil, err
	}
	constant, err := g.engineFiles()
	return append(files, constant...), err
}

// renderAll renders as many sources at once as there are processors, since formatting them takes
// most of a run.
func (g *generator) renderAll(sources []source) ([]File, error) {
	files, errs := make([]File, len(sources)), make([]error, len(sources))
	processors := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i, s := range sources {
		processors <- struct{}{}
		wg.Go(func() {
			defer func() { <-processors }()
			files[i].Path = g.path(s.name)
			if files[i].Content, errs[i] = g.render(s); errs[i] != nil {
				errs[i] = fmt.Errorf("golang: %s: %w", files[i].Path, errs[i])
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return files, nil
}

// generator is what the constructs share.
type generator struct {
	catalogue  *catalogue.Catalogue
	dialect    *dialect.Dialect
	importPath string
	patterns   map[*catalogue.Field]string // the variables' names
}

// source is a file before it is rendered: its name and its declarations.
type source struct {
	name         string
	declarations []jen.Code
	err          error
}

// sources returns all files that depend on the catalogue as a whole.
func (g *generator) sources() []source {
	var sources []source
	if len(g.catalogue.Types) > 0 {
		sources = append(sources, g.typesSource())
	}
	if s := g.privacySource(); len(s.declarations) > 0 {
		sources = append(sources, s)
	}
	for _, e := range g.catalogue.Events {
		sources = append(sources, g.eventSource(e))
	}
	for _, c := range g.catalogue.Consumers {
		sources = append(sources, g.consumerSource(c))
	}
	return sources
}
