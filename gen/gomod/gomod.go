// Package gomod reads the little of a go.mod that the compiler needs.
package gomod

import "strings"

// File is what a go.mod says.
type File struct {
	Module string   // the module's path; "" if it has none
	Tools  []string // the packages of its tool directives
}

// Parse reads a go.mod. What it does not understand, it passes over: the go command reports that better.
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
