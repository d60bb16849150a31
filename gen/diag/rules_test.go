package diag_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outboxgen/outboxgen/gen/diag"
)

// ruleConstants are the IDs that rules.go declares.
func ruleConstants(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "rules.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || strings.HasPrefix(spec.Names[0].Name, "Category") || len(spec.Values) != 1 {
			return true
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
			id, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		return true
	})
	return ids
}

func TestTheTableHoldsEveryRuleOnce(t *testing.T) {
	t.Parallel()
	var ids []string
	for _, r := range diag.Rules() {
		ids = append(ids, r.ID)
		if !regexp.MustCompile(`^[A-Z]+(_[A-Z]+)+$`).MatchString(r.ID) || r.Category == "" ||
			r.Purpose == "" {
			t.Errorf("got %+v, want an ID in capitals, a category and a purpose", r)
		}
		if r.Category == diag.CategoryLint && r.Severity == diag.Error {
			t.Errorf("%s: lint is never an error", r.ID)
		}
	}
	constants := ruleConstants(t)
	slices.Sort(ids)
	slices.Sort(constants)
	if len(ids) == 0 || !slices.Equal(ids, constants) {
		t.Errorf("rules in the table (+) are not the constants (-):\n%s", cmp.Diff(constants, ids))
	}
}

// Only constants name rules, so that the table is complete.
func TestRulesAreReportedByTheirConstants(t *testing.T) {
	t.Parallel()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") ||
			strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if name := selected(n.Fun); name == "diag.New" && len(n.Args) > 0 &&
					isString(n.Args[0]) {
					t.Errorf("%s: diag.New takes a constant", files.Position(n.Pos()))
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Rule" && isString(n.Value) {
					t.Errorf("%s: Rule is a constant", files.Position(n.Pos()))
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func selected(e ast.Expr) string {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return x.Name + "." + s.Sel.Name
}

func isString(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING
}
