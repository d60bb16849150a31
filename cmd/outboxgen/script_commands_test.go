package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/outboxgen/outboxgen/gen/lock"
	"github.com/outboxgen/outboxgen/gen/output"
)

// commandsOfScripts are what scripts can say beside testscript's own commands.
func commandsOfScripts() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"exits": exits,
		"save":  save,
		"same":  same,
		"crlf":  crlf,
		"edit":  edit,
		"resum": resum,
		"fifo":  fifo,
	}
}

// exits CODE PROGRAM ARGS... runs a program that must end with an exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if code != want {
		ts.Fatalf("got exit code %d, want %d", code, want)
	}
}

// save DIR COPY copies a directory to one that must not exist yet.
func save(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.CopyFS(ts.MkAbs(args[1]), os.DirFS(ts.MkAbs(args[0]))))
}

// same DIR COPY compares two directories by their files' names and contents; ! same wants a
// difference.
func same(ts *testscript.TestScript, neg bool, args []string) {
	one, other := readTree(ts, args[0]), readTree(ts, args[1])
	var differ []string
	for name := range one {
		if data, ok := other[name]; !ok || !bytes.Equal(data, one[name]) {
			differ = append(differ, name)
		}
	}
	for name := range other {
		if _, ok := one[name]; !ok {
			differ = append(differ, name)
		}
	}
	slices.Sort(differ)
	if neg == (len(differ) == 0) {
		ts.Fatalf("files that differ: %q", differ)
	}
}

func readTree(ts *testscript.TestScript, dir string) map[string][]byte {
	files := map[string][]byte{}
	root := os.DirFS(ts.MkAbs(dir))
	ts.Check(fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[path], err = fs.ReadFile(root, path)
		return err
	}))
	return files
}

// crlf FILE... gives files the line endings of Windows.
func crlf(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		text := strings.ReplaceAll(ts.ReadFile(name), "\n", "\r\n")
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

// edit FILE OLD NEW replaces what stands once in a file. \n is a line break.
func edit(ts *testscript.TestScript, _ bool, args []string) {
	name, text := filepath.Clean(args[0]), ts.ReadFile(args[0])
	old, to := strings.ReplaceAll(args[1], `\n`, "\n"), strings.ReplaceAll(args[2], `\n`, "\n")
	if n := strings.Count(text, old); n != 1 {
		ts.Fatalf("%s: %q stands in it %d times, want once", name, old, n)
	}
	ts.Check(os.WriteFile(ts.MkAbs(name), []byte(strings.Replace(text, old, to, 1)), 0o600))
}

// resum LOCK FILE puts the sum of a file into a lock, as somebody might who has edited both.
func resum(ts *testscript.TestScript, _ bool, args []string) {
	l, err := lock.Parse([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
	l.Files[args[1]] = output.Hash([]byte(ts.ReadFile(args[1])))
	data, err := l.Encode()
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o600))
}
