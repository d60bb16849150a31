package source

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/outboxgen/outboxgen/gen/diag"
)

// lookAhead is how many lines a quoted text or a bracket may go on for and still be told from an
// error.
const lookAhead = 40

// locate turns the YAML reader's error into a diagnostic. The reader often reports the beginning of
// a block instead of the line, or no place at all. So locate looks for the line itself: it is the
// one after the longest prefix of the file that is YAML.
func (l *loader) locate(err error) diag.Diagnostic {
	number := l.firstBadLine()
	line := l.line(number)
	mark := firstMark(line)
	if tab := slices.Index(line[:mark], '\t'); tab >= 0 { // on a blank line too
		return l.tabProblem(number, tab)
	}
	for n := max(number-1, 1); n <= number; n++ { // the reader may stumble over it one line later
		if column := misplaced(l.line(n)); column >= 0 {
			return l.invisibleAt(n, column)
		}
	}
	reason := strings.TrimPrefix(err.Error(), "yaml: ")
	reason = reportedLine.ReplaceAllString(reason, "")
	pos := diag.Pos{
		File: l.file, Line: number, Column: mark + 1, End: max(trimmedEnd(line), mark+2),
	}
	for _, c := range syntaxCauses {
		if !strings.Contains(reason, c.reason) {
			continue
		}
		help := c.help
		if c.at != nil {
			match := matchAt(c.at, line)
			if match == nil {
				continue
			}
			pos.Column, pos.End = match[0]+1, match[1]+1
			help = strings.ReplaceAll(help, "%s", string(line[match[0]:match[1]]))
		}
		return diag.New(c.rule, pos, "%s", cmp.Or(c.message, "this is not YAML: "+reason)).
			WithHelp("%s", help)
	}
	return diag.New(diag.YAMLSyntax, pos, "this is not YAML: %s", reason).
		WithHelp("look at this line and at the one before it: indentation, quotes, brackets")
}

var reportedLine = regexp.MustCompile(`^line \d+: `)

// matchAt returns the range of runes that the expression's first group matches, or nil.
func matchAt(re *regexp.Regexp, line []rune) []int {
	s := string(line)
	m := re.FindStringSubmatchIndex(s)
	if m == nil {
		return nil
	}
	start := len([]rune(s[:m[2]]))
	return []int{start, start + len([]rune(s[m[2]:m[3]]))}
}

// syntaxCause is a frequent mistake behind an error of the YAML reader.
type syntaxCause struct {
	reason string // part of the reader's error
	// at must match the line, and its first group is marked. If it is nil, any line matches, and
	// is marked as a whole.
	at      *regexp.Regexp
	rule    string
	message string // instead of the reader's
	help    string // with %s for the marked text
}

// syntaxCauses are tried in order.
var syntaxCauses = []syntaxCause{
	{"", regexp.MustCompile(`:\s+([\[{][^"']*[\]}]\?)`), diag.YAMLSyntax,
		"YAML cannot read a ? after a bracket", `quote it: "%s"`},
	{"unknown anchor", regexp.MustCompile(`(\*[^\s,\]}]+)`), diag.YAMLAnchor,
		"aliases are not part of the language",
		"repeat the value here; quote it if it is meant as text"},
	{"alphabetic or numeric character", regexp.MustCompile(`[\s\[{,]([*&][^\s,\]}]*)`),
		diag.YAMLAnchor,
		"anchors and aliases are not part of the language", "quote it if it is meant as text"},
	{"tag", regexp.MustCompile(`[\s\[{,](![^\s,\]}]*)`), diag.YAMLTag,
		"tags are not part of the language",
		"remove the tag; quote the value if it is meant as text"},
	{"cannot start any token", regexp.MustCompile(`^ *(?:[-?:] *)+(\t)`), diag.YAMLTab,
		"a tab stands where YAML takes spaces only", "write spaces"},
	{"cannot start any token", regexp.MustCompile("[\\s\\[{,]([@`%][^\\s,\\]}]*)"), diag.YAMLSyntax,
		"YAML has no plain text that begins like this", "quote it"},
	{"unknown escape character", regexp.MustCompile(`(\\[^0abt\tnvfre "/\\N_LPxuU])`), diag.YAMLSyntax,
		"this is not an escape in double quotes",
		"write the backslash twice, or use single quotes"},
	{"did not find expected key", regexp.MustCompile(`[\s\[{,]('[^']*'\w[^']*'?)`), diag.YAMLSyntax,
		"the second quote ends the text", `write an apostrophe twice, or use double quotes`},
	{"mapping values are not allowed", regexp.MustCompile(`^[^{\["']*?:\s[^{\["']*?(:)(?:\s|$)`), diag.YAMLSyntax,
		"a second colon on this line", "quote the text that contains it"},
	{"mapping values are not allowed", nil, diag.YAMLSyntax, "",
		"the line before it has a value already: indent this one like its neighbours"},
	{"could not find expected ':'", nil, diag.YAMLSyntax, "",
		"a key is followed by a colon and a space"},
	{"did not find expected ',' or ']'", nil, diag.YAMLSyntax, "",
		`separate with commas, close [ with ], and quote what has a question mark, such as "string?"`},
	{"did not find expected ',' or '}'", nil, diag.YAMLSyntax, "",
		`separate with commas, close { with }, and quote what has a question mark, such as "string?"`},
	{"unexpected end of stream", nil, diag.YAMLSyntax, "", "close the quote that opens here"},
	{"unexpected document indicator", nil, diag.YAMLSyntax, "", "close the quote that opens here"},
	{"did not find expected '-' indicator", nil, diag.YAMLSyntax, "",
		"indent this line like the other items of its list, or like the keys around it"},
	{"block sequence entries are not allowed", nil, diag.YAMLSyntax, "",
		"a list begins on a line of its own, or is written as [a, b]"},
	{"did not find expected key", nil, diag.YAMLSyntax, "",
		"indent this line like the keys beside it, and look for a quote or bracket that " +
			"closes too early"},
	{"did not find expected node content", nil, diag.YAMLSyntax, "",
		"something is missing here, or a bracket or comma is too much"},
}

// firstBadLine returns the number of the line after the longest prefix of the file that parses. A
// prefix that ends within a quoted text or brackets does not parse either, so that bisection may
// find a shorter one: it is extended as long as a longer one parses.
func (l *loader) firstBadLine() int {
	good := 0
	for range lookAhead {
		good = l.bisect(good)
		longer := l.longerPrefix(good)
		if longer == good {
			break
		}
		good = longer
	}
	return min(good+1, len(l.lines))
}

// bisect returns a number of lines from good on that parse, while one more does not.
func (l *loader) bisect(good int) int {
	bad := len(l.lines)
	for bad-good > 1 {
		if middle := (good + bad) / 2; l.parses(middle) {
			good = middle
		} else {
			bad = middle
		}
	}
	return good
}

// longerPrefix returns a greater number of lines that parse, or good if there is none near. Such a
// prefix ends with a line that closes something.
func (l *loader) longerPrefix(good int) int {
	for n := good + 2; n <= min(good+lookAhead, len(l.lines)-1); n++ {
		if closes(l.line(n)) && l.parses(n) {
			return n
		}
	}
	return good
}

// closes reports whether a line can end what an earlier one began: brackets, a quoted text,
// directives.
func closes(line []rune) bool {
	return isMarker(line, "---") || slices.ContainsFunc(line, func(r rune) bool {
		return strings.ContainsRune("]}\"'", r)
	})
}

func (l *loader) parses(lines int) bool {
	_, err := parse(l.text(lines))
	return err == nil
}

// text returns the first lines of the file.
func (l *loader) text(lines int) []byte {
	var b bytes.Buffer
	for i, line := range l.lines[:lines] {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(string(line))
	}
	return b.Bytes()
}
