package beside_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/outboxgen/outboxgen/gen/beside"
	"github.com/outboxgen/outboxgen/gen/diag"
)

const generated = `package events

import (
	"fmt"
	"context"

	"example.org/x/outbox"
	"example.org/x/pgx/v5"
)

type Store struct{ pool int }

func NewStore() *Store { return nil }

func (s *Store) Read(ctx context.Context, m outbox.Message, tx pgx.Tx) {}

type OrderPlacedV1 struct {
	OrderID string
	Note, Colour string
}

func (e OrderPlacedV1) Validate() error { return nil }

const ChannelWeb, channel = "web", "outbox"

var _ = NewStore
`

// check looks at one file of the user's beside the generated one.
func check(name, text string) diag.List {
	list, _ := beside.Check(fstest.MapFS{"events/" + name: {Data: []byte(text)},
		"events/store.gen.go": {Data: []byte("package old")}},
		beside.Package{
			Name: "events", Dir: "events", Files: map[string][]byte{
				"store.gen.go": []byte(generated), ".gitattributes": nil,
			},
			Removed:      func(name string, _ []byte) bool { return name == "events/stale.gen.go" },
			Display:      func(path string) string { return "svc/" + path },
			OtherPackage: func(name string) string { return "not " + name },
		})
	return list
}

func TestWhatDoesNotCompileBesideGeneratedCodeIsSaid(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"package mine": "1:9-13 this file is of package mine, and the files that are generated " +
			"beside it are of package events",
		"// Package main runs.\npackage main": "2:9-13 this file is of package main, and the " +
			"files that are generated beside it are of package events",
		"package events\ntype Store int": "2:6-11 Store is declared here and in " +
			"svc/events/store.gen.go",
		"package events\ntype Store = int": "2:6-11 Store is declared here and in " +
			"svc/events/store.gen.go",
		"package events\nfunc NewStore() {}": "2:6-14 NewStore is declared here and in " +
			"svc/events/store.gen.go",
		"package events\nvar a, channel = 1, 2": "2:8-15 channel is declared here and in " +
			"svc/events/store.gen.go",
		"package events\nconst (\nX = 1\nStore\n)": "4:1-6 Store is declared here and in " +
			"svc/events/store.gen.go",
		"package events\n/* ü */ var ChannelWeb = 1": "2:13-23 ChannelWeb is declared here and " +
			"in svc/events/store.gen.go",
		"package events\nfunc (OrderPlacedV1) Validate() {}": "2:22-30 OrderPlacedV1.Validate is " +
			"declared here and in svc/events/store.gen.go",
		"package events\nfunc (e *OrderPlacedV1) Colour() {}": "2:25-31 OrderPlacedV1.Colour is " +
			"declared here and in svc/events/store.gen.go",
		"package events\nfunc outbox() {}": "2:6-12 outbox is declared here, " +
			"and svc/events/store.gen.go imports a package so called",
		"package events\nvar pgx int": "2:5-8 pgx is declared here, and " +
			"svc/events/store.gen.go imports a package so called",
		"package events\nimport \"example.org/channel\"": "2:8-29 channel is imported here, " +
			"and declared in svc/events/store.gen.go",
		"package events\nimport Store \"example.org/x\"": "2:8-13 Store is imported here, " +
			"and declared in svc/events/store.gen.go",
		"//go:build linux\n\npackage mine": "3:9-13 this file is of package " +
			"mine, and the files that are generated beside it are of package events",
		"//go:build !windows\n\npackage events\ntype Store int": "4:6-11 Store is declared here " +
			"and in svc/events/store.gen.go",
		"package events\ntype Store int\nfunc broken( {": "2:6-11 Store is declared here " +
			"and in svc/events/store.gen.go",
	} {
		for _, name := range []string{"mine.go", "mine_windows.go", "mine_test.go", "copy.gen.go"} {
			if strings.Contains(text, "//go:build") && name == "mine_windows.go" {
				continue // never compiled, for the two contradict each other
			}
			list := check(name, text)
			if len(list) != 1 {
				t.Errorf("%s: %q: got %v, want %s", name, text, list, want)
				continue
			}
			place, message, _ := strings.Cut(want, " ")
			d := list[0]
			at := fmt.Sprintf("%d:%d-%d", d.Pos.Line, d.Pos.Column, d.Pos.End)
			if d.Rule != diag.OutputCollision || d.Pos.File != "svc/events/"+name || at != place ||
				d.Message != message || d.Help == "" {
				t.Errorf("%s: %q: got %s %s %+v, want %s", name, text, at, d.Message, d, want)
			}
		}
	}
}

func TestWhatCompilesBesideGeneratedCodeIsFine(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"mine.go": "package events\n\nimport outbox \"example.org/x/outbox\"\n\ntype store " +
			"struct{ Store, pgx int }\n\n" +
			"func (store) Read() { var channel, NewStore int }\n\nfunc init() {}\n\nfunc " +
			"(OrderPlacedV1) Total() int { return 0 }\n\nvar _ = 1\n",
		"mine_test.go":   "package events_test\n\ntype Store int\n",
		"_mine.go":       "package mine\n",
		".mine.go":       "package mine\n",
		"mine.txt":       "package mine\n",
		"tool.go":        "//go:build ignore\n\npackage main\n",
		"tools.go":       "//go:build tools && linux\n\npackage tools\n",
		"plan9_plan9.go": "package mine\n",
		"docs.go":        "package documentation\n",
		"empty.go":       "",
		"stale.gen.go":   "package old\n\ntype Store int\n",
		"order.go":       "package events\n\ntype Order struct{ Validate, Read bool }\n",
		"generic.go": "package events\n\ntype Set[T any] struct{}\n\nfunc (s Set[T]) " +
			"Validate() {}\n",
		"imports.go":      "package events\n\nimport _ \"example.org/Store\"\n",
		"dot.go":          "package events\n\nimport . \"example.org/y\"\n",
		"aliased.go":      "package events\n\nimport c \"example.org/channel\"\n",
		"constrained.go":  "//go:build integration\n\npackage events\n\ntype Store int\n",
		"store.gen.go":    "package old\n",
		"other_mips64.go": "package mine\n",
	} {
		if list := check(name, text); len(list) != 0 {
			t.Errorf("%s: got %v", name, list)
		}
	}
}

func TestOneFileOfAnotherPackageIsReported(t *testing.T) {
	t.Parallel()
	disk := fstest.MapFS{"db/pipe.go": {Mode: fs.ModeNamedPipe}}
	for _, name := range []string{"a.go", "b.go", "c.go"} {
		disk["db/"+name] = &fstest.MapFile{Data: []byte("package mine\n")}
	}
	list, sources := beside.Check(disk, beside.Package{
		Name: "db", Dir: "db", Removed: func(string, []byte) bool { return false },
		Display: func(path string) string { return path }, OtherPackage: func(name string) string {
			return "move " + name
		},
	})
	if len(list) != 1 || list[0].Pos.File != "db/a.go" || list[0].Help != "move mine" ||
		string(sources["db/a.go"]) != "package mine\n" {
		t.Errorf("got %v and %v", list, sources)
	}
}
