package beside

import (
	"go/ast"
	"go/build"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strconv"
)

// systems are those for which a file counts as compiled. What does not compile on one of them is
// reported on all.
var systems = [][2]string{
	{build.Default.GOOS, build.Default.GOARCH},
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}, {"windows", "amd64"},
}

// isCompiled reports whether the go command compiles a file if it is given no tags. It does not if
// the name begins with a point or an underscore, if the build constraint asks for a tag, or if it
// is not a regular file.
func isCompiled(dir fs.FS, in, name string) bool {
	info, err := fs.Stat(dir, path.Join(in, name))
	if err != nil || !info.Mode().IsRegular() || path.Ext(name) != ".go" {
		return false
	}
	for _, system := range systems {
		ctx := build.Default
		ctx.GOOS, ctx.GOARCH, ctx.CgoEnabled, ctx.BuildTags = system[0], system[1], true, nil
		ctx.JoinPath = path.Join
		ctx.OpenFile = func(name string) (io.ReadCloser, error) { return dir.Open(name) }
		if ok, err := ctx.MatchFile(in, name); ok && err == nil {
			return true
		}
	}
	return false
}

// declaration is a name that a file declares, in a package or in a type, as in Order.Validate.
type declaration struct {
	name  string
	ident ast.Node
}

// declarations returns what a file declares, with the fields of its structs if they are asked for:
// a method cannot share a field's name.
func declarations(f *ast.File, fields bool) []declaration {
	var all []declaration
	add := func(prefix string, idents ...*ast.Ident) {
		for _, ident := range idents {
			if ident.Name != "_" {
				all = append(all, declaration{prefix + ident.Name, ident})
			}
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				add(receiver(d.Recv)+".", d.Name)
			} else if d.Name.Name != "init" {
				add("", d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.ValueSpec:
					add("", s.Names...)
				case *ast.TypeSpec:
					add("", s.Name)
					if t, ok := s.Type.(*ast.StructType); ok && fields {
						for _, field := range t.Fields.List {
							add(s.Name.Name+".", field.Names...)
						}
					}
				}
			}
		}
	}
	return all
}

// receiver returns the name of a method's type.
func receiver(list *ast.FieldList) string {
	if len(list.List) == 0 {
		return ""
	}
	t := list.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if ident, ok := t.(*ast.Ident); ok {
		return ident.Name
	}
	return ""
}

var versionSuffix = regexp.MustCompile(`^(.*?)(/v[0-9]+|\.v[0-9]+)$`)

// imports returns the names under which a file imports packages. An import without a name is taken
// to have that of the package's directory, as nearly all do.
func imports(f *ast.File) []declaration {
	var all []declaration
	for _, spec := range f.Imports {
		if spec.Name != nil {
			if spec.Name.Name != "_" && spec.Name.Name != "." {
				all = append(all, declaration{spec.Name.Name, spec.Name})
			}
			continue
		}
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		if m := versionSuffix.FindStringSubmatch(importPath); m != nil {
			importPath = m[1]
		}
		all = append(all, declaration{path.Base(importPath), spec.Path})
	}
	return all
}
