package golang

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dave/jennifer/jen"
)

// columns is the width that comments are wrapped at.
const columns = 110

// comment makes a comment of paragraphs, without the empty ones. Paragraphs may come from the
// catalogue: compilers and linters take no line of them for a directive, whatever it says.
func comment(paragraphs ...string) *jen.Statement {
	return jen.Comment(commentText("", paragraphs...))
}

// deprecatedComment is comment with a paragraph that tools understand, if instead is not empty:
//
//	// Deprecated: use order.placed@2.
func deprecatedComment(instead string, paragraphs ...string) *jen.Statement {
	return jen.Comment(commentText(instead, paragraphs...))
}

func commentText(deprecated string, paragraphs ...string) string {
	var lines []string
	add := func(paragraph []string) {
		if len(paragraph) > 0 && len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, paragraph...)
	}
	for _, p := range paragraphs {
		add(harmless(wrapped(p)))
	}
	if deprecated = oneLine(deprecated); deprecated != "" {
		paragraph := wrapped("Deprecated: " + sentence(deprecated))
		harmless(paragraph[1:])
		add(paragraph)
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight("// "+line, " ")
	}
	return strings.Join(lines, "\n")
}

// Two or more quotation marks of a kind, of which gofmt makes others, in round after round.
var (
	backquotes  = regexp.MustCompile("``+")
	apostrophes = regexp.MustCompile("''+")
)

// wrapped returns text as lines that fit, without blank ones at either end and without two of them
// in a row. Line breaks and indentation are kept.
func wrapped(text string) []string {
	var lines []string
	text = apostrophes.ReplaceAllString(backquotes.ReplaceAllString(printable(text), "`"), `"`)
	for line := range strings.SplitSeq(text, "\n") {
		content := strings.TrimLeft(line, " \t")
		if content != "" {
			lines = append(lines, wrapLine(line[:len(line)-len(content)], content)...)
		} else if len(lines) > 0 && lines[len(lines)-1] != "" {
			lines = append(lines, "")
		}
	}
	if len(lines) > 0 && lines[len(lines)-1] == "" {
		return lines[:len(lines)-1]
	}
	return lines
}

func wrapLine(indent, text string) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = indent + word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns-len("// "):
			lines = append(lines, line)
			line = indent + word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// significant matches the beginnings of lines that tools act upon, even with a space behind the
// slashes.
var significant = []string{"deprecated:", "go:", "+build", "nolint", "lint:"}

// harmless marks lines as quoted that a tool would act upon.
func harmless(lines []string) []string {
	for i, line := range lines {
		content := strings.TrimLeft(line, " \t")
		for _, s := range significant {
			if strings.HasPrefix(strings.ToLower(content), s) {
				lines[i] = line[:len(line)-len(content)] + "> " + content
			}
		}
	}
	return lines
}

// printable returns text as it can stand in Go source: valid UTF-8 with line feeds, without other
// control characters, byte order marks, and characters that make a line look like another one.
func printable(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029':
			return '\n'
		case r == '\t':
			return '\t'
		case unicode.IsControl(r), r == '\ufeff', unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
}

// oneLine returns text with every run of white space as one space.
func oneLine(text string) string { return strings.Join(strings.Fields(printable(text)), " ") }

// sentence ends text with a full stop, if its last line is prose that lacks one.
func sentence(text string) string {
	text = strings.TrimRightFunc(text, unicode.IsSpace)
	last := text[strings.LastIndexByte(text, '\n')+1:]
	if last == "" || strings.ContainsAny(last[:1], " \t#[-*") || endsSentence(last) {
		return text
	}
	return text + "."
}

func endsSentence(line string) bool {
	r, _ := utf8.DecodeLastRuneInString(strings.TrimRight(line, "\"')]*_`"))
	return unicode.IsPunct(r)
}
