package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/outboxgen/outboxgen/gen"
	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/gomod"
	"github.com/outboxgen/outboxgen/gen/output"
	"github.com/outboxgen/outboxgen/gen/sqlc"
)

const defaultFile = "outbox.yaml"

// compile is what generate and check have in common: one catalogue, from its file to a comparison
// with the disk.
type compile struct {
	env    Env
	file   string // as messages call it
	path   string // on the system
	sqlc   string
	format *choice
}

func newCompile(env Env, f flags) *compile {
	c := &compile{env: env, format: newChoice("text", "json", "github")}
	f.StringVar(&c.sqlc, "sqlc", "",
		"the sqlc to run, a `path`; by default that of the module's tools, then that on PATH")
	f.Var(c.format, "format",
		"the `format` of what is said about the catalogue: text, json or github")
	return c
}

// session is one run in the catalogue's directory, while other runs wait.
type session struct {
	*compile
	output.Dir
	release func()
}

// open finds the catalogue and waits until no other run is in the way. Runs that only read can go
// on side by side. If there is no error, the caller closes the session.
func (c *compile) open(ctx context.Context, args []string, writes bool) (*session, error) {
	dir, err := c.openDir(args)
	if err != nil {
		return nil, err
	}
	release, err := dir.Hold(ctx, writes, func() {
		fmt.Fprintf(c.env.Stderr, "outboxgen: waiting for another run that is at work on %s\n",
			c.file)
	})
	if err != nil {
		_ = dir.Close()
		return nil, err
	}
	return &session{compile: c, Dir: dir, release: release}, nil
}

func (s *session) close() {
	s.release()
	_ = s.Dir.Close()
}

func (c *compile) openDir(args []string) (output.Dir, error) {
	file := defaultFile
	if len(args) > 0 {
		file = args[0]
	}
	c.file, c.path = filepath.ToSlash(filepath.Clean(file)), absolute(c.env, file)
	info, err := os.Stat(c.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(args) == 0:
		return output.Dir{}, fmt.Errorf("%s: no such file here: name the catalogue, or run "+
			"\"outboxgen init\" to write one", c.file)
	case errors.Is(err, fs.ErrNotExist):
		return output.Dir{}, fmt.Errorf("%s: no such file", c.file)
	case err != nil:
		return output.Dir{}, err
	case info.IsDir():
		return output.Dir{}, fmt.Errorf("%s: a directory: name the catalogue in it", c.file)
	case !info.Mode().IsRegular():
		return output.Dir{},
			fmt.Errorf("%s: %s, which is not read: name a file", c.file, output.Kind(info.Mode()))
	}
	root, err := os.OpenRoot(filepath.Dir(c.path))
	return output.Dir{Root: root, Name: path.Dir(c.file)}, err
}

// generate compiles the catalogue. sqlc works in the directory that temp returns.
func (s *session) generate(ctx context.Context, temp func() (string, error)) (gen.Result, error) {
	data, err := output.ReadFile(s.path)
	if err != nil {
		return gen.Result{}, fmt.Errorf("%s: %w", s.file, err)
	}
	return gen.Generate(ctx, gen.Input{
		File: s.file, Data: data, Dir: s.FS(),
		ImportPath: func(below string) (string, error) {
			return packagePath(filepath.Join(filepath.Dir(s.path), below))
		},
		Neighbours: s.neighbours, Seen: sqlc.UserSeen(),
		SQLC: func(ctx context.Context, files map[string][]byte) (map[string][]byte, error) {
			command, err := sqlc.Find(s.sqlcPath(), filepath.Dir(s.path))
			if err != nil {
				return nil, err
			}
			command.Notice = func() { fmt.Fprintf(s.env.Stderr, building, command) }
			at, err := temp()
			if err != nil {
				return nil, err
			}
			return command.Compile(ctx, at, files)
		},
	})
}

const building = "outboxgen: waiting for %q: go is building sqlc, which takes some minutes the " +
	"first time\n"

// sqlcPath returns the flag's value. One with a separator is a file's path, relative to the
// directory that the command runs in.
func (c *compile) sqlcPath() string {
	if strings.ContainsAny(c.sqlc, `/\`) {
		return absolute(c.env, c.sqlc)
	}
	return c.sqlc
}

// report prints diagnostics in the chosen format. Text has no hints, which would come again at
// every run.
func (c *compile) report(list diag.List, sources map[string][]byte) error {
	switch c.format.value {
	case "json":
		return diag.WriteJSON(c.env.Stdout, list)
	case "github":
		return diag.WriteGitHub(c.env.Stdout, list)
	}
	var shown diag.List
	for _, d := range list {
		if d.Severity != diag.Info {
			shown.Add(d)
		}
	}
	return diag.WriteText(c.env.Stderr, shown, sources)
}

func absolute(env Env, file string) string {
	if !filepath.IsAbs(file) {
		file = filepath.Join(env.Dir, file)
	}
	if abs, err := filepath.Abs(file); err == nil {
		return abs
	}
	return file
}

// packagePath returns the import path of a directory's package, by the go.mod in it or above it.
// The directory need not exist.
func packagePath(dir string) (string, error) {
	var below []string // the names of the directories between the go.mod and the package
	for root := dir; ; root = filepath.Dir(root) {
		data, err := output.ReadFile(filepath.Join(root, "go.mod"))
		if err == nil {
			module := gomod.Parse(data).Module
			if module == "" {
				return "", fmt.Errorf("%s: it names no module", filepath.Join(root, "go.mod"))
			}
			return path.Join(append([]string{module}, below...)...), nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return "", fmt.Errorf("%s: %w", filepath.ToSlash(filepath.Join(root, "go.mod")), err)
		}
		if root == filepath.Dir(root) {
			return "", errors.New("there is no go.mod beside the catalogue or above it: run " +
				"\"go mod init\" first")
		}
		if help := gomod.ImportPathProblem(filepath.Base(root)); help != "" {
			return "", fmt.Errorf("%s: the go command imports no package below a directory of "+
				"this name: %s", filepath.ToSlash(root), help)
		}
		below = append([]string{filepath.Base(root)}, below...)
	}
}
