package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The exit codes.
const (
	exitOK       = 0
	exitProblems = 1 // the catalogue has problems, or check found something
	exitFailed   = 2 // the command could not do its work
)

// After a signal, the exit code is 128 and its number: 130 for an interrupt, 143 for SIGTERM.

// Env is what a command gets from its process.
type Env struct {
	Dir            string // of relative paths; "" for the process's own
	Stdout, Stderr io.Writer
}

// Do runs a command and returns its exit code.
func Do(ctx context.Context, args []string, env Env) int {
	if len(args) == 0 {
		_, _ = io.WriteString(env.Stderr, usage())
		return exitFailed
	}
	name, args := args[0], args[1:]
	switch name {
	case "help", "-h", "-help", "--help":
		return help(ctx, args, env)
	case "-version", "--version":
		name = "version"
	}
	c, ok := find(name)
	if !ok {
		fmt.Fprintf(env.Stderr,
			"outboxgen: unknown command %q%s\nRun \"outboxgen help\" for the commands.\n", name,
			didYouMean(name))
		return exitFailed
	}
	code, err := c.run(ctx, args, env)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	var signal interruption
	if errors.As(context.Cause(ctx), &signal) {
		return interrupted(env, signal, err)
	}
	if err != nil {
		fmt.Fprintf(env.Stderr, "outboxgen: %v\n", err)
		return code
	}
	return code
}

// failedIf returns the exit code that goes with an error, if there is one.
func failedIf(err error) (int, error) {
	if err != nil {
		return exitFailed, err
	}
	return exitOK, nil
}

// interrupted prints what became of a command that was asked to end. If it had begun to move files
// to their places, it has moved all of them or put the old ones back.
func interrupted(env Env, signal interruption, err error) int {
	done := ": nothing was changed"
	if err == nil {
		done = ", when all was done"
	} else if !errors.Is(err, signal) {
		fmt.Fprintf(env.Stderr, "outboxgen: %v\n", err)
		done = ""
	}
	fmt.Fprintf(env.Stderr, "outboxgen: %v%s\n", signal, done)
	return signal.code()
}

// command is one of outboxgen's commands. An error is about the command's work; what is wrong with
// a catalogue is printed.
type command struct {
	name, purpose string
	run           func(ctx context.Context, args []string, env Env) (int, error)
}

func commands() []command {
	return []command{
		{"init", "write a catalogue to begin with", runInit},
		{"generate", "compile a catalogue and write what differs", runGenerate},
		{"check", "find out whether what generate wrote is up to date", runCheck},
		{"rules", "list the rules that catalogues are checked by", runRules},
		{"version", "print the version", runVersion},
	}
}

func find(name string) (command, bool) {
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == name })
	if i < 0 {
		return command{}, false
	}
	return all[i], true
}

func usage() string {
	var b strings.Builder
	b.WriteString(`outboxgen compiles a catalogue of events (outbox.yaml) to what a transactional
outbox and idempotent consumers need: Go types and functions, SQL, and migrations.

Usage: outboxgen COMMAND [FLAGS] [FILE]

`)
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-9s %s\n", c.name, c.purpose)
	}
	b.WriteString(`
Run "outboxgen help COMMAND" for a command's flags.

Exit codes: 0, success; 1, the catalogue has problems, or check found a difference; 2, the command
could not do its work; 128 plus the signal's number, a signal ended it (130 for Ctrl-C).
`)
	return b.String()
}

func help(ctx context.Context, args []string, env Env) int {
	if len(args) == 0 {
		_, _ = io.WriteString(env.Stdout, usage())
		return exitOK
	}
	return Do(ctx, []string{args[0], "--help"}, env)
}
