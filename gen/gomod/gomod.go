// Package gomod reads what the compiler needs of a go.mod, and checks names in import paths.
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

// Parse reads a go.mod. It skips what it does not understand, which the go command reports better.
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

// unimportable are the names of directories that the go command refuses in import paths, and what
// to do about each.
var unimportable = []struct {
	name *regexp.Regexp
	help string
}{
	{regexp.MustCompile(`[^A-Za-z0-9_.~+-]`), "use letters, digits and _ . ~ + -"},
	{regexp.MustCompile(`^[~+-]`), "begin with a letter or digit"},
	{regexp.MustCompile(`\.$`), "do not end with a point"},
	{regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[1-9]|lpt[1-9])(\.|$)`),
		"Windows keeps this name for itself: choose another"},
	{regexp.MustCompile(`^[^.]*~[0-9]+(\.|$)`), "do not end with ~ and digits"},
}

// ImportPathProblem says how to change the name of a directory, so that the go command can import
// packages in it. It returns "" if the name is fine.
func ImportPathProblem(name string) string {
	for _, u := range unimportable {
		if u.name.MatchString(name) {
			return u.help
		}
	}
	return ""
}
