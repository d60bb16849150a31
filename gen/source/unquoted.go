package source

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/outboxgen/outboxgen/gen/diag"
)

// standIn replaces a question mark that the YAML reader would refuse.
const standIn = '\ue000'

// maxMended is how many lines of a file are mended: for each, the file is read many times.
const maxMended = 20

// unquoted matches an optional type that lacks its quotes, with what stands before and after it.
var unquoted = regexp.MustCompile(`(?:^|[\[{,:])\s*([A-Za-z_][A-Za-z0-9_]*\?)\s*`)

// read parses the file. Optional types that lack their quotes are reported, and read as if they had
// them, so that all of them are found at once, and what else is wrong.
func (l *loader) read() (*yaml.Node, error) {
	for {
		root, err := parse(l.text(len(l.lines)))
		if err == nil || !l.mend(l.firstBadLine()) {
			return &root, err
		}
	}
}

// mend replaces question marks in the first bad line, and in those after it while brackets may be
// open, until the reader gets beyond it. If the reader never does, mend leaves the lines as they
// are and returns false.
func (l *loader) mend(bad int) bool {
	var problems diag.List
	before := slices.Clone(l.lines)
	for n := bad; n <= min(bad+lookAhead, len(l.lines)); n++ {
		found := l.mendLine(n)
		if len(found) == 0 {
			continue
		}
		if l.mended++; l.mended > maxMended {
			break
		}
		problems.Add(found...)
		if l.parses(len(l.lines)) || l.firstBadLine() > n {
			l.list.Add(problems...)
			return true
		}
	}
	l.lines = before
	return false
}

// mendLine replaces the question marks of a line's unquoted optional types, and says so.
func (l *loader) mendLine(n int) diag.List {
	var problems diag.List
	line := slices.Clone(l.line(n))
	bare := unquotedPart(line)
	for _, m := range unquoted.FindAllSubmatchIndex(bare, -1) {
		if m[1] < len(bare) && !strings.ContainsRune(",]}", rune(bare[m[1]])) {
			continue
		}
		pos := diag.Pos{File: l.file, Line: n, Column: m[2] + 1, End: m[3] + 1}
		problems.Add(diag.New(diag.YAMLSyntax, pos,
			"within [ ] and { } YAML takes the ? for one of its own signs").
			WithHelp("quote it: %q", bare[m[2]:m[3]]))
		line[m[3]-1] = standIn
	}
	l.lines[n-1] = line
	return problems
}

// unquotedPart returns a byte for each rune of a line. Quoted texts, and runes that are not ASCII,
// are replaced.
func unquotedPart(line []rune) []byte {
	const blot = '"'
	bare := bytes.Repeat([]byte{blot}, len(line))
	for i := 0; i < len(line); i++ {
		switch {
		case (line[i] == '"' || line[i] == '\'') && opensQuote(line, i):
			i += quotedLength(line[i:]) - 1
		case line[i] < utf8.RuneSelf:
			bare[i] = byte(line[i])
		}
	}
	return bare
}

// restored returns text as it is in the file.
func (l *loader) restored(text string) string {
	if l.mended == 0 {
		return text
	}
	return strings.ReplaceAll(text, string(standIn), "?")
}
