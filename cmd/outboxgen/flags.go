package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// flags are the flags of a command. If help is asked for, they print its text and then themselves.
type flags struct {
	*flag.FlagSet
	env            Env
	synopsis, text string
}

func newFlags(env Env, synopsis, text string) flags {
	f := flag.NewFlagSet("outboxgen", flag.ContinueOnError)
	f.SetOutput(io.Discard) // errors are returned and printed once, by Do
	f.Usage = func() {}
	return flags{FlagSet: f, env: env, synopsis: synopsis, text: text}
}

func (f flags) help() {
	fmt.Fprintf(f.env.Stdout, "Usage: outboxgen %s\n\n%s\n", f.synopsis, strings.TrimSpace(f.text))
	found := false
	f.VisitAll(func(*flag.Flag) { found = true })
	if found {
		fmt.Fprintln(f.env.Stdout, "\nFlags:")
		f.SetOutput(f.env.Stdout)
		f.PrintDefaults()
		f.SetOutput(io.Discard)
	}
}

// parse reads flags before and after at most limit arguments, which it returns.
func (f flags) parse(args []string, limit int) ([]string, error) {
	var rest []string
	for {
		err := f.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			f.help()
		}
		if err != nil {
			return nil, err
		}
		if f.NArg() == 0 {
			break
		}
		rest, args = append(rest, f.Arg(0)), f.Args()[1:]
	}
	if len(rest) > limit {
		return nil, fmt.Errorf("unexpected argument %q", rest[limit])
	}
	return rest, nil
}

// choice is a flag that takes one of several words. The first is the default.
type choice struct {
	value   string
	options []string
}

func newChoice(options ...string) *choice { return &choice{value: options[0], options: options} }

func (c *choice) String() string { return c.value }

func (c *choice) Set(s string) error {
	if !slices.Contains(c.options, s) {
		return fmt.Errorf("want one of %s", strings.Join(c.options, ", "))
	}
	c.value = s
	return nil
}
