package source

import (
	"regexp"
	"slices"
	"unicode"

	"gopkg.in/yaml.v3"

	"github.com/outboxgen/outboxgen/gen/diag"
)

// isInvisible reports whether a rune looks like a space or like nothing. YAML takes it for text: as
// indentation it makes a key of another name, and after a colon it makes no key at all.
func isInvisible(r rune) bool {
	const brailleBlank = 0x2800
	return r > unicode.MaxASCII && (r == brailleBlank ||
		unicode.In(r, unicode.Zs, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point))
}

// invisibleAt reports the rune at a column, which is counted from 0.
func (l *loader) invisibleAt(line, column int) diag.Diagnostic {
	pos := diag.Pos{File: l.file, Line: line, Column: column + 1, End: column + 2}
	return diag.New(diag.YAMLEncoding,
		pos, "YAML does not take U+%04X for a space, and it looks like one or like nothing",
		l.line(line)[column]).WithHelp(
		`write a space, or remove it; in a text, put it between double quotes`,
	)
}

// misplaced returns the index of an invisible rune before a line's first mark, or after the colon
// of its key, or -1.
func misplaced(line []rune) int {
	first := slices.IndexFunc(line, func(r rune) bool { return r != ' ' && r != '\t' })
	if first >= 0 && isInvisible(line[first]) {
		return first
	}
	for i, r := range line {
		switch {
		case r == '#' || r == '"' || r == '\'':
			return -1
		case r == ':' && i+1 < len(line) && isInvisible(line[i+1]):
			return i + 1
		}
	}
	return -1
}

// checkInvisible reports lines that are indented with what cannot be seen, except those that are
// text.
func (l *loader) checkInvisible(text map[int]bool) {
	for i, line := range l.lines {
		first := firstMark(line)
		if first < len(line) && isInvisible(line[first]) && !text[i+1] {
			l.reportInvisible(i+1, first)
		}
	}
}

// indicator matches what means something to YAML if a space follows.
var indicator = regexp.MustCompile(`^([-?]|[\w@.-]+:)?$`)

// checkPlain reports an invisible rune in a scalar without quotes if it stands where a space would
// have meant something: at its beginning, after a hyphen or a key's colon, before a number sign. In
// a key, there is no place for one.
func (l *loader) checkPlain(y *yaml.Node, isKey bool) {
	if y.Kind != yaml.ScalarNode || y.Style&^yaml.TaggedStyle != 0 {
		return
	}
	value := []rune(y.Value)
	for i, r := range value {
		if !isInvisible(r) {
			continue
		}
		if !isKey && !indicator.MatchString(string(value[:i])) &&
			(i+1 == len(value) || value[i+1] != '#') {
			continue
		}
		column := y.Column - 1 + i
		if line := l.line(y.Line); column >= len(line) || line[column] != r {
			// The scalar goes on in another line.
			column = y.Column - 1
			if column >= len(line) {
				continue
			}
		}
		l.reportInvisible(y.Line, column)
		return
	}
}

func (l *loader) reportInvisible(line, column int) {
	l.hidden = true
	l.report(l.invisibleAt(line, column))
}
