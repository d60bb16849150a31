package report

import (
	"strings"
	"unicode/utf8"
)

// table is rows of cells, with the heading first. All rows are as long as the heading.
type table [][]string

// String returns the table as Markdown that is readable as plain text, too: each column but the
// last is as wide as its widest cell.
func (t table) String() string {
	t = t.escaped()
	widths := t.widths()
	var b strings.Builder
	for i, row := range t {
		writeRow(&b, row, widths)
		if i == 0 {
			writeRule(&b, widths)
		}
	}
	return b.String()
}

func (t table) escaped() table {
	escaped := make(table, len(t))
	for i, row := range t {
		for _, cell := range row {
			escaped[i] = append(escaped[i], inline(cell))
		}
	}
	return escaped
}

func (t table) widths() []int {
	widths := make([]int, len(t[0]))
	for _, row := range t {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	widths[len(widths)-1] = 0
	return widths
}

func writeRow(b *strings.Builder, row []string, widths []int) {
	for i, cell := range row {
		b.WriteString("| " + cell +
			strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell))) + " ")
	}
	b.WriteString("|\n")
}

func writeRule(b *strings.Builder, widths []int) {
	for _, width := range widths {
		b.WriteString("| " + strings.Repeat("-", max(3, width)) + " ")
	}
	b.WriteString("|\n")
}

var markdown = strings.NewReplacer(`\`, `\\`, `|`, `\|`, `<`, `\<`, `*`, `\*`, "`", "\\`")

// inline returns a text in one line, escaped so that Markdown shows it as it is.
func inline(text string) string { return markdown.Replace(strings.Join(strings.Fields(text), " ")) }
