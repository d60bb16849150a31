package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/outboxgen/outboxgen/bench/internal/scenario"
)

// options are what the flags ask for.
type options struct {
	quick, list, strict bool
	scenarios           []scenario.Scenario
	out                 string // the folder for the report; "" for none
	cpuProfile          string // files; "" for none
	memoryProfile       string
}

// parse reads the flags, and writes to stderr what is wrong with them.
func parse(known []scenario.Scenario, args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var only string
	flags.BoolVar(&o.quick, "quick", false, "fewer events and rounds, for a first look")
	flags.StringVar(&only, "only", "",
		"run these `scenarios`, separated by commas; -list has their names")
	flags.BoolVar(&o.list, "list", false, "list the scenarios instead of running them")
	flags.StringVar(&o.out, "out", "",
		"also write the report, "+pageFile+" and "+plotFile+", to this `folder`; not with -quick "+
			"or -only")
	flags.BoolVar(&o.strict, "strict", false, "fail where a bound is missed, too")
	flags.StringVar(&o.cpuProfile, "cpuprofile", "",
		"write a CPU profile of this process, which is that of the relay and its peers, to this "+
			"`file`")
	flags.StringVar(&o.memoryProfile, "memprofile", "",
		"write a profile of its allocations to this `file`")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("bench: %q is no flag: scenarios are named with -only", flags.Arg(0))
	case o.out != "" && (o.quick || only != ""):
		err = errors.New("bench: -out: a run with -quick or -only is not the whole, and writes " +
			"nothing: drop -out")
	default:
		o.scenarios, err = choose(known, only)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
	}
	return o, err
}

// choose returns the scenarios of a comma-separated list, in the order of the table, or all of them
// for "".
func choose(known []scenario.Scenario, only string) ([]scenario.Scenario, error) {
	if only == "" {
		return known, nil
	}
	names := strings.Split(only, ",")
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
		if !slices.ContainsFunc(known, func(s scenario.Scenario) bool {
			return s.Name == names[i]
		}) {
			return nil, fmt.Errorf("bench: -only: there is no scenario %q; there are %s", names[i],
				strings.Join(namesOf(known), ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(known), func(s scenario.Scenario) bool {
		return !slices.Contains(names, s.Name)
	}), nil
}

func namesOf(scenarios []scenario.Scenario) []string {
	names := make([]string, len(scenarios))
	for i, s := range scenarios {
		names[i] = s.Name
	}
	return names
}
