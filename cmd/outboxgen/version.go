package main

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/outboxgen/outboxgen/gen/catalogue"
)

const versionHelp = `
Prints the versions of outboxgen, of the catalogue language that it reads, and of the Go that it was
built with.
`

func runVersion(_ context.Context, args []string, env Env) (int, error) {
	f := newFlags(env, "version", versionHelp)
	if _, err := f.parse(args, 0); err != nil {
		return exitFailed, err
	}
	version, goVersion := "(unknown)", "go"
	if info, ok := debug.ReadBuildInfo(); ok {
		version, goVersion = info.Main.Version, info.GoVersion
	}
	if version == "" {
		version = "(devel)"
	}
	_, err := fmt.Fprintf(env.Stdout, "outboxgen %s, catalogue language %d, %s\n", version,
		catalogue.LanguageVersion, goVersion)
	return failedIf(err)
}
