package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/outboxgen/outboxgen/gen"
	"github.com/outboxgen/outboxgen/gen/output"
	"github.com/outboxgen/outboxgen/gen/sqlc"
)

const initHelp = `
Writes a catalogue to begin with to FILE (by default outbox.yaml) and says what to do next. It does
not overwrite a file.
`

func runInit(ctx context.Context, args []string, env Env) (int, error) {
	f := newFlags(env, "init [FLAGS] [FILE]", initHelp)
	var s gen.Scaffold
	f.StringVar(&s.Service, "service", "",
		"the `name` that events give as their source; by default from go.mod")
	f.StringVar(&s.Package, "package", "",
		"the `name` of the generated package; by default the last part of --dir")
	f.StringVar(&s.Dir, "dir", "internal/events",
		"the `directory` of the generated package, relative to the catalogue")
	args, err := f.parse(args, 1)
	if err != nil {
		return exitFailed, err
	}
	file := defaultFile
	if len(args) > 0 {
		file = args[0]
	}
	at := absolute(env, file)
	importPath, err := packagePath(filepath.Dir(at))
	if err != nil {
		return exitFailed, err
	}
	if s.Service == "" {
		s.Service = gen.ServiceOf(importPath)
	}
	if s.Package == "" {
		s.Package = path.Base(s.Dir)
	}
	data, err := s.Render()
	if err != nil {
		return exitFailed, fmt.Errorf("init: %w", err)
	}
	generated, err := packagePath(filepath.Join(filepath.Dir(at), s.Dir))
	if err != nil {
		return exitFailed, err
	}
	if err := create(ctx, at, data); err != nil {
		return exitFailed, fmt.Errorf("%s: %w", filepath.ToSlash(file), err)
	}
	fmt.Fprintf(env.Stdout, nextSteps, filepath.ToSlash(file), fileArgument(filepath.Base(file)),
		generated, sqlc.TestedVersion)
	return exitOK, nil
}

const nextSteps = `wrote %[1]s

Next:
  1. Write down your own events in it.
  2. Make outboxgen a tool of the module, so that it is as old as the runtime that its code calls:
       go get -tool github.com/outboxgen/outboxgen/cmd/outboxgen
  3. Put this line into a Go file beside the catalogue:
       //go:generate go tool outboxgen generate%[2]s
  4. Compile it, and fetch what the generated code imports:
       go generate . && go mod tidy
     It needs sqlc: go install github.com/sqlc-dev/sqlc/cmd/sqlc@%[4]s
  5. Commit what was written, outboxgen.lock included, and import %[3]s.
`

// fileArgument returns the argument that names a catalogue, which the default name does not need.
func fileArgument(file string) string {
	if file == defaultFile {
		return ""
	}
	return " " + file
}

// create writes a file that does not exist yet, whole or not at all.
func create(ctx context.Context, name string, data []byte) error {
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return output.Reason(err)
	}
	dir := output.Dir{Root: root}
	defer func() { _ = dir.Close() }()
	release, err := dir.Hold(ctx, true, func() {})
	if err != nil {
		return err
	}
	defer release()
	err = dir.Create(ctx, filepath.Base(name), data)
	if errors.Is(err, fs.ErrExist) {
		return errors.New("it is there already, and is left as it is")
	}
	return err
}
