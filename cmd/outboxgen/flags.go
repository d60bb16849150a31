package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// newFlags returns the flags of a command. Asked for help, they print text and then themselves.
func newFlags(env Env, synopsis, text string) *flag.FlagSet {
	f := flag.NewFlagSet("outboxgen", flag.ContinueOnError)
	f.SetOutput(io.Discard) // errors are returned and printed once, by Do
	f.Usage = func() {
		fmt.Fprintf(env.Stdout, "Usage: outboxgen %s\n\n%s\n", synopsis, strings.TrimSpace(text))
		found := false
		f.VisitAll(func(*flag.Flag) { found = true })
		if found {
			fmt.Fprintln(env.Stdout, "\nFlags:")
			f.SetOutput(env.Stdout)
			f.PrintDefaults()
			f.SetOutput(io.Discard)
		}
	}
	return f
}

// parse reads flags before and after at most limit arguments, which it returns.
func parse(f *flag.FlagSet, args []string, limit int) ([]string, error) {
	var rest []string
	for {
		if err := f.Parse(args); err != nil {
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
