package gomod_test

import (
	"slices"
	"testing"

	"github.com/outboxgen/outboxgen/gen/gomod"
)

func TestParseReadsModuleAndTools(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text, module string
		tools              []string
	}{
		{"empty", "", "", nil},
		{"one line each", "module example.com/a\n\ngo 1.25.0\n\ntool example.com/t/cmd/t\n",
			"example.com/a", []string{"example.com/t/cmd/t"}},
		{"blocks", "module (\n\texample.com/a\n)\ntool (\n\tx.test/b // why\n\tx.test/c\n)\n",
			"example.com/a", []string{"x.test/b", "x.test/c"}},
		{"quotes and comments", "// module no\nmodule \"example.com/a\" // tool x\r\n",
			"example.com/a", nil},
		{"requirements are no tools",
			"module a.test/a\nrequire (\n\ttool.test/x v1.0.0\n)\nrequire tool.test/y v1.0.0\n",
			"a.test/a", nil},
		{"without spaces", "module a.test/a\ntool(\n\tx.test/b\n)\n", "a.test/a",
			[]string{"x.test/b"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := gomod.Parse([]byte(test.text))
			if got.Module != test.module || !slices.Equal(got.Tools, test.tools) {
				t.Errorf("got %q %q, want %q %q", got.Module, got.Tools, test.module, test.tools)
			}
		})
	}
}

func TestImportPathProblemKnowsWhatTheGoCommandImports(t *testing.T) {
	t.Parallel()
	for name, imported := range map[string]bool{
		"events": true, "Events_2": true, "a.b": true, "a+b": true, "a~b": true, "v2": true,
		"~": false, "~a": false, "-a": false, "+a": false,
		"a-b": true, "ev@1": false, "a b": false, "ünï": false, "a!": false, "a.": false,
		"con": false, "CON": false, "aux.d": false, "console": true,
		"com1": false, "com10": true, "a~1": false, "a~1.b": false, "a.b~1": true,
	} {
		if help := gomod.ImportPathProblem(name); (help == "") != imported {
			t.Errorf("%s: got %q, want it to be imported: %v", name, help, imported)
		}
	}
}
