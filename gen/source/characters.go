package source

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/outboxgen/outboxgen/gen/diag"
)

// maxCharacterProblems is how many diagnostics a file gets that is not text at all.
const maxCharacterProblems = 10

// checkCharacters reports what is not UTF-8, and characters that a reviewer cannot see. It returns
// false if there are any.
func (l *loader) checkCharacters(data []byte) bool {
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		d := diag.New(diag.YAMLEncoding, diag.Pos{File: l.file, Line: 1, Column: 1},
			"the file is UTF-16, and must be UTF-8")
		l.report(d.WithHelp("save it as UTF-8"))
		return false
	}
	pos := diag.Pos{File: l.file, Line: 1, Column: 1}
	for i := 0; i < len(data) && len(l.list) < maxCharacterProblems; {
		r, size := utf8.DecodeRune(data[i:])
		if d, bad := judgeRune(r, size, data[i:], pos); bad {
			l.report(d)
		}
		pos.Column++
		if r == '\n' {
			pos.Line, pos.Column = pos.Line+1, 1
		}
		i += size
	}
	return len(l.list) == 0
}

// judgeRune returns what is wrong with the rune r at the start of rest.
func judgeRune(r rune, size int, rest []byte, pos diag.Pos) (diag.Diagnostic, bool) {
	pos.End = pos.Column + 1
	reject := func(format string, args ...any) (diag.Diagnostic, bool) {
		return diag.New(diag.YAMLEncoding, pos, format, args...), true
	}
	switch {
	case r == utf8.RuneError && size <= 1:
		d, bad := reject("byte 0x%02X is not UTF-8", rest[0])
		return d.WithHelp("save the file as UTF-8"), bad
	case r == '\t' || r == '\n' || r == '\r' && len(rest) > 1 && rest[1] == '\n':
		return diag.Diagnostic{}, false
	case r == '\r':
		d, bad := reject("a carriage return without a line feed")
		return d.WithHelp("end lines with LF or CRLF"), bad
	case r == 0x85 || r == 0x2028 || r == 0x2029:
		d, bad := reject("U+%04X is a line break to some readers and not to others", r)
		return d.WithHelp(`in a text, write it as an escape in double quotes: "\u%04X"`, r), bad
	case diag.IsDirectionControl(r):
		d, bad := reject("U+%04X turns the direction of writing, so that the file reads "+
			"differently from what it says", r)
		return d.WithHelp(`in a text, write it as an escape in double quotes: "\u%04X"`, r), bad
	case unicode.IsControl(r) || r == 0xfeff || r == 0xfffe || r == 0xffff:
		d, bad := reject("U+%04X is not a character that text has", r)
		return d.WithHelp("remove it"), bad
	default:
		return diag.Diagnostic{}, false
	}
}

// checkDocuments reports directives, and every document after the first.
func (l *loader) checkDocuments() {
	started := false // content or a "---" has been seen
	for i, line := range l.lines {
		pos := diag.Pos{File: l.file, Line: i + 1, Column: 1, End: 4}
		switch {
		case isMarker(line, "...") || started && isMarker(line, "---"):
			d := diag.New(diag.YAMLDocuments, pos,
				"a catalogue is one document, and this begins or ends another")
			l.report(d.WithHelp("remove this line"))
		case isMarker(line, "---"):
			started = true
		case !started && len(line) > 0 && line[0] == '%':
			pos.End = trimmedEnd(line)
			l.report(diag.New(diag.YAMLDocuments, pos, "a catalogue has no YAML directives").
				WithHelp("remove this line"))
		case firstMark(line) < len(line) && line[firstMark(line)] != '#':
			started = true
		}
	}
}

func isMarker(line []rune, marker string) bool {
	return len(line) >= 3 && string(line[:3]) == marker &&
		(len(line) == 3 || line[3] == ' ' || line[3] == '\t')
}

// indentTab returns the index of a tab before a line's first mark, or -1. A line of white space
// only has no indentation.
func indentTab(line []rune) int {
	mark := firstMark(line)
	if mark == len(line) {
		return -1
	}
	for i, r := range line[:mark] {
		if r == '\t' {
			return i
		}
	}
	return -1
}

// firstMark returns the index of a line's first rune that is not white space, or its length.
func firstMark(line []rune) int {
	for i, r := range line {
		if r != ' ' && r != '\t' {
			return i
		}
	}
	return len(line)
}

func countSpaces(line []rune) int {
	for i, r := range line {
		if r != ' ' {
			return i
		}
	}
	return len(line)
}

// trimmedEnd returns the column after a line's last mark.
func trimmedEnd(line []rune) int {
	n := len(line)
	for n > 0 && (line[n-1] == ' ' || line[n-1] == '\t') {
		n--
	}
	return n + 1
}
