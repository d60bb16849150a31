package source

import (
	"regexp"
	"strings"

	"github.com/outboxgen/outboxgen/gen/diag"
)

// checkTabs reports tabs in the indentation that the YAML reader accepts, except on lines that are
// text.
func (l *loader) checkTabs(text map[int]bool) {
	for i, line := range l.lines {
		if tab := indentTab(line); tab >= 0 && !text[i+1] {
			l.report(l.tabProblem(i+1, tab))
		}
	}
}

func (l *loader) tabProblem(line, tab int) diag.Diagnostic {
	pos := diag.Pos{File: l.file, Line: line, Column: tab + 1, End: tab + 2}
	if blank := l.line(line); firstMark(blank) == len(blank) {
		return diag.New(diag.YAMLTab,
			pos, "the line is blank but for a tab").WithHelp("remove the tab")
	}
	return diag.New(diag.YAMLTab, pos, "the line is indented with a tab").
		WithHelp("indent with spaces")
}

// blockLines returns the lines that are text of a block scalar.
func (l *loader) blockLines() map[int]bool {
	lines := map[int]bool{}
	for _, start := range l.blocks {
		indent := -1
		for n := start + 1; n <= len(l.lines); n++ {
			line := l.line(n)
			spaces := countSpaces(line)
			if spaces < len(line) && indent < 0 {
				indent = spaces
			}
			if spaces < len(line) && spaces < max(indent, 1) {
				break
			}
			lines[n] = true
		}
	}
	return lines
}

var directive = regexp.MustCompile(`(?:^|\s)#\s*(outboxgen:\S.*)`)

// directives returns the comments for this tool, except on lines that are text.
func (l *loader) directives(text map[int]bool) []*Node {
	var out []*Node
	for i, line := range l.lines {
		m := matchAt(directive, line)
		if m == nil || text[i+1] {
			continue
		}
		out = append(out, &Node{
			Kind: Scalar, Text: strings.TrimSpace(string(line[m[0]:])),
			Pos: diag.Pos{File: l.file, Line: i + 1, Column: m[0] + 1, End: trimmedEnd(line)},
		})
	}
	return out
}
