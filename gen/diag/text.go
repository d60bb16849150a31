package diag

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// WriteText prints the list for people: each diagnostic with its line of source and a caret under
// the place, sorted, at most MaxPrinted of them. Sources holds the files' contents by the name that
// positions use; a line that it does not have is left out.
func WriteText(w io.Writer, list List, sources map[string][]byte) error {
	shown, hidden := list.printed()
	p := textPrinter{w: bufio.NewWriter(w), lines: map[string][]string{}, sources: sources}
	for _, d := range shown {
		p.diagnostic(d)
	}
	if len(hidden) > 0 {
		fmt.Fprintln(p.w, andMore(hidden))
	}
	return p.w.Flush()
}

// andMore says how many diagnostics were left out, by severity.
func andMore(hidden List) string {
	counts := map[Severity]int{}
	for _, d := range hidden {
		counts[d.Severity]++
	}
	var parts []string
	for s := Error; s <= Info; s++ {
		switch n := counts[s]; {
		case n == 1:
			parts = append(parts, "1 "+s.String())
		case n > 1 && s == Info:
			parts = append(parts, fmt.Sprintf("%d infos", n))
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", n, s))
		}
	}
	return fmt.Sprintf("and %d more: %s", len(hidden), strings.Join(parts, ", "))
}

type textPrinter struct {
	w       *bufio.Writer
	sources map[string][]byte
	lines   map[string][]string
}

func (p *textPrinter) diagnostic(d Diagnostic) {
	fmt.Fprintf(p.w, "%s%s: %s [%s]\n", prefix(d.Pos), d.Severity, printable(d.Message), d.Rule)
	p.snippet(d.Pos)
	if d.Help != "" {
		fmt.Fprintf(p.w, "   = help: %s\n", printable(d.Help))
	}
	for _, r := range d.Related {
		fmt.Fprintf(p.w, "%snote: %s\n", prefix(r.Pos), printable(r.Message))
		p.snippet(r.Pos)
	}
}

// prefix is the place as editors and terminals recognise it.
func prefix(pos Pos) string {
	switch {
	case pos.File == "":
		return ""
	case pos.Line == 0:
		return printable(pos.File) + ": "
	case pos.Column == 0:
		return fmt.Sprintf("%s:%d: ", printable(pos.File), pos.Line)
	default:
		return fmt.Sprintf("%s:%d:%d: ", printable(pos.File), pos.Line, pos.Column)
	}
}

// snippet prints the line of source at pos, and carets under the runes that pos marks.
func (p *textPrinter) snippet(pos Pos) {
	line, ok := p.line(pos)
	if !ok {
		return
	}
	text, start, end := window([]rune(line), pos)
	fmt.Fprintf(p.w, "%5d | %s\n", pos.Line, strings.TrimRight(display(text), " \t"))
	if pos.Column > 0 {
		carets := 0
		for _, r := range text[start:end] {
			carets += width(r)
		}
		fmt.Fprintf(p.w, "      | %s%s\n", blanks(text[:start]),
			strings.Repeat("^", max(carets, 1)))
	}
}

func (p *textPrinter) line(pos Pos) (string, bool) {
	source, ok := p.sources[pos.File]
	if !ok || pos.Line < 1 {
		return "", false
	}
	lines, ok := p.lines[pos.File]
	if !ok {
		source = bytes.TrimPrefix(source, []byte("\ufeff"))
		lines = strings.Split(strings.ReplaceAll(string(source), "\r\n", "\n"), "\n")
		p.lines[pos.File] = lines
	}
	if pos.Line > len(lines) {
		return "", false
	}
	return lines[pos.Line-1], true
}

// What is shown of a long line, in runes: so much of it, and so much before the caret.
const (
	maxShown     = 160
	beforeCarets = 40
)

// window cuts a long line to the part around the carets, and returns the range of runes within it
// that they mark.
func window(line []rune, pos Pos) (text []rune, start, end int) {
	start = min(max(pos.Column-1, 0), len(line))
	end = min(max(pos.End-1, start+1), len(line))
	if len(line) <= maxShown {
		return line, start, max(start, end)
	}
	from := max(0, min(start-beforeCarets, len(line)-maxShown))
	to := min(len(line), from+maxShown)
	text = append([]rune{}, line[from:to]...)
	if from > 0 {
		text[0] = '…'
	}
	if to < len(line) {
		text[len(text)-1] = '…'
	}
	start = min(start-from, len(text))
	return text, start, max(start, min(end-from, len(text)))
}

// display returns text as a terminal may show it: nothing in it can move the cursor or turn the
// writing direction.
func display(text []rune) string {
	var b strings.Builder
	for _, r := range text {
		if unsafeToPrint(r) {
			r = utf8.RuneError
		}
		b.WriteRune(r)
	}
	return b.String()
}

// blanks returns white space as wide as text. A tab stays one, so that it reaches the same tab
// stop.
func blanks(text []rune) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\t' {
			b.WriteByte('\t')
			continue
		}
		b.WriteString(strings.Repeat(" ", width(r)))
	}
	return b.String()
}

// printable returns a message on one line, without what a terminal would obey.
func printable(s string) string {
	return strings.TrimRight(display([]rune(strings.ReplaceAll(s, "\n", " "))), " ")
}
