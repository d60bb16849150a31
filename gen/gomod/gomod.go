// Package gomod knows the little of Go's modules that the compiler needs.
package gomod

import (
	"regexp"
	"strings"
)

// File is what a go.mod says.
type File struct {
	Module string   // the module's path; "" if it has none
	Tools  []string // the packages of its tool directives
}

// Parse reads a go.mod. What it does not understand, it passes over: the go command reports that
// better.
func Parse(data []byte) File {
	var (
		f     File
		block string // the directive of the parenthesised block that a line is in
	)
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "//")
		words := strings.Fields(strings.Replace(line, "(", " ( ", 1))
		switch {
		case len(words) == 0:
		case words[0] == ")":
			block = ""
		case len(words) == 2 && words[1] == "(":
			block = words[0]
		case block != "":
			f.directive(block, words[0])
		case len(words) > 1:
			f.directive(words[0], words[1])
		}
	}
	return f
}

func (f *File) directive(name, argument string) {
	argument = strings.Trim(argument, "\"`")
	switch name {
	case "module":
		f.Module = argument
	case "tool":
		f.Tools = append(f.Tools, argument)
	}
}

// unimportable are the names of directories that the go command refuses in import paths, and how to mend them.
var unimportable = []struct {
	name *regexp.Regexp
	mend string
}{
	{regexp.MustCompile(`[^A-Za-z0-9_.~+-]`), "use letters, digits and _ . ~ + -"},
	{regexp.MustCompile(`^[~+-]`), "begin with a letter or digit"},
	{regexp.MustCompile(`\.$`), "do not end with a point"},
	{regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[1-9]|lpt[1-9])(\.|$)`), "Windows keeps this name for itself: choose another"},
	{regexp.MustCompile(`^[^.]*~[0-9]+(\.|$)`), "do not end with ~ and digits"},
}

// Mend says how to mend a directory's name so that the go command can import packages in it, or returns "" where it can.
func Mend(name string) string {
	for _, u := range unimportable {
		if u.name.MatchString(name) {
			return u.mend
		}
	}
	return ""
}
