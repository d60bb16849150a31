// Package beside looks at the Go files that stand beside generated ones, and finds those that do
// not compile with them: files of another package, and declarations of a name that generated code
// has.
package beside

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/outboxgen/outboxgen/gen/diag"
)

// Package is a package that is to be generated.
type Package struct {
	Name    string
	Dir     string                              // with slashes, in the file system that Check gets
	Files   map[string][]byte                   // the generated files, by name
	Removed func(name string, data []byte) bool // reports whether a file will be gone
	Display func(path string) string            // what messages call a file
	// OtherPackage says what to do about a file of the package of that name.
	OtherPackage func(name string) string
}

// Check returns what is wrong with the other Go files of a package's directory, and the contents of
// the files that diagnostics point into. It leaves out the files that the go command ignores,
// because of their names or their build constraints.
func Check(dir fs.FS, p Package) (diag.List, map[string][]byte) {
	c := checker{Package: p, fset: token.NewFileSet(), sources: map[string][]byte{}}
	users := c.read(dir)
	if len(users) == 0 {
		return nil, nil
	}
	c.index()
	for _, u := range users {
		c.file(u)
	}
	return c.list, c.sources
}

type checker struct {
	Package
	fset     *token.FileSet
	declared map[string]string // the names that generated code declares, and the file of each
	imported map[string]string // the names under which it imports packages
	strange  bool              // a file of another package was reported
	list     diag.List
	sources  map[string][]byte
}

// user is a file that was not generated.
type user struct {
	display string
	data    []byte
	syntax  *ast.File
}

// read returns the files that are compiled with the package, on one system or another.
func (c *checker) read(dir fs.FS) []user {
	entries, err := fs.ReadDir(dir, c.Dir)
	if err != nil {
		return nil // there is no such directory yet
	}
	var users []user
	for _, e := range entries {
		name := path.Join(c.Dir, e.Name())
		if _, generated := c.Files[e.Name()]; generated || !isCompiled(dir, c.Dir, e.Name()) {
			continue
		}
		data, err := fs.ReadFile(dir, name)
		if err != nil || c.Removed(name, data) {
			continue
		}
		// If a file does not parse, go build reports that. Check looks at what could be read of it.
		syntax, _ := parser.ParseFile(c.fset, name, data, parser.SkipObjectResolution)
		if syntax == nil || syntax.Name == nil {
			continue
		}
		if p := syntax.Name.Name; p != "" && p != "_" && p != "documentation" {
			// The go command ignores packages of the names that are left out.
			users = append(users, user{display: c.Display(name), data: data, syntax: syntax})
		}
	}
	return users
}

// index collects what the generated files declare and import.
func (c *checker) index() {
	c.declared, c.imported = map[string]string{}, map[string]string{}
	for name, data := range c.Files {
		if path.Ext(name) != ".go" {
			continue
		}
		f, err := parser.ParseFile(c.fset, name, data, parser.SkipObjectResolution)
		if err != nil {
			continue // It does not compile anyway.
		}
		display := c.Display(path.Join(c.Dir, name))
		for _, d := range declarations(f, true) {
			c.declared[d.name] = display
		}
		for _, d := range imports(f) {
			c.imported[d.name] = display
		}
	}
}

func (c *checker) file(u user) {
	test := strings.HasSuffix(u.display, "_test.go")
	switch name := u.syntax.Name.Name; {
	case test && name == c.Name+"_test":
		return // a package of its own
	case name != c.Name:
		c.otherPackage(u)
		return
	}
	for _, d := range declarations(u.syntax, false) {
		if file, ok := c.declared[d.name]; ok {
			c.report(u, d.ident, "%s is declared here and in %s", d.name, file).
				help("rename it, or what the catalogue calls so; or move this file elsewhere")
		} else if file, ok := c.imported[d.name]; ok {
			c.report(u, d.ident, "%s is declared here, and %s imports a package so called", d.name,
				file).
				help("rename it, or move this file elsewhere")
		}
	}
	for _, d := range imports(u.syntax) {
		if file, ok := c.declared[d.name]; ok {
			c.report(u, d.ident, "%s is imported here, and declared in %s", d.name, file).
				help("give the import another name")
		}
	}
}

// otherPackage reports the first file of another package only: if the directory belongs to another
// package, all of its files do.
func (c *checker) otherPackage(u user) {
	if !c.strange {
		c.strange = true
		c.report(u, u.syntax.Name,
			"this file is of package %s, and the files that are generated beside it are of "+
				"package %s",
			u.syntax.Name.Name, c.Name).help(c.OtherPackage(u.syntax.Name.Name))
	}
}

// reported is the diagnostic that was added last.
type reported struct{ *diag.Diagnostic }

func (r reported) help(text string) { r.Help = text }

func (c *checker) report(u user, at ast.Node, format string, args ...any) reported {
	c.sources[u.display] = u.data
	c.list.Add(diag.New(diag.OutputCollision, c.pos(u, at), format, args...))
	return reported{&c.list[len(c.list)-1]}
}

// pos counts columns in characters, as all diagnostics do.
func (c *checker) pos(u user, at ast.Node) diag.Pos {
	from, to := c.fset.PositionFor(at.Pos(), false), c.fset.PositionFor(at.End(), false)
	start := from.Offset - (from.Column - 1)
	column := 1 + utf8.RuneCount(u.data[start:from.Offset])
	marked := u.data[from.Offset:min(to.Offset, len(u.data))]
	return diag.Pos{
		File: u.display, Line: from.Line, Column: column, End: column + utf8.RuneCount(marked),
	}
}
