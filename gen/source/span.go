package source

import (
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/outboxgen/outboxgen/gen/diag"
)

// span returns the position of a node. Its end is that of the part which is on the first line.
func (l *loader) span(y *yaml.Node) diag.Pos {
	pos := diag.Pos{File: l.file, Line: y.Line, Column: y.Column}
	line := l.line(y.Line)
	start := y.Column - 1
	if start < 0 || start >= len(line) {
		pos.End = y.Column + 1
		return pos
	}
	pos.End = start + 1 + max(length(y, line[start:]), 1)
	return pos
}

// length returns how many runes of rest, which begins with the node, belong to it.
func length(y *yaml.Node, rest []rune) int {
	switch {
	case y.Anchor != "", y.Style&yaml.TaggedStyle != 0,
		rest[0] == '!', rest[0] == '&', rest[0] == '*':
		return wordLength(rest)
	case y.Kind == yaml.ScalarNode && y.Style&yaml.DoubleQuotedStyle != 0:
		return quotedLength(rest)
	case y.Kind == yaml.ScalarNode && y.Style&yaml.SingleQuotedStyle != 0:
		return quotedLength(rest)
	case y.Kind == yaml.ScalarNode && y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return wordLength(rest)
	case y.Kind == yaml.ScalarNode:
		return plainLength([]rune(y.Value), rest)
	case y.Style&yaml.FlowStyle != 0:
		return flowLength(rest)
	default:
		return contentLength(rest)
	}
}

// wordLength counts the runes up to white space, or up to what ends a word between brackets.
func wordLength(rest []rune) int {
	n := slices.IndexFunc(rest, func(r rune) bool {
		return r == ' ' || r == '\t' || r == ',' ||
			r == ']' || r == '}'
	})
	if n < 0 {
		return len(rest)
	}
	return n
}

// plainLength counts the runes of a plain scalar. One that goes on in the next line ends with this
// one.
func plainLength(value, rest []rune) int {
	if len(value) <= len(rest) && slices.Equal(value, rest[:len(value)]) {
		return len(value)
	}
	return contentLength(rest)
}

// quotedLength counts the runes up to and with the closing quote.
func quotedLength(rest []rune) int {
	quote := rest[0]
	for i := 1; i < len(rest); i++ {
		switch {
		case quote == '"' && rest[i] == '\\':
			i++
		case quote == '\'' && rest[i] == quote && i+1 < len(rest) && rest[i+1] == quote:
			i++
		case rest[i] == quote:
			return i + 1
		}
	}
	return contentLength(rest)
}

// flowLength counts the runes up to and with the bracket that closes the first one.
func flowLength(rest []rune) int {
	depth := 0
	for i := 0; i < len(rest); i++ {
		switch r := rest[i]; {
		case r == '"' || r == '\'' && opensQuote(rest, i):
			i += quotedLength(rest[i:]) - 1
		case r == '[' || r == '{':
			depth++
		case r == ']' || r == '}':
			depth--
			if depth == 0 {
				return i + 1
			}
		}
	}
	return contentLength(rest)
}

// opensQuote reports whether the quote at i begins a scalar rather than being an apostrophe within
// one.
func opensQuote(rest []rune, i int) bool {
	return i == 0 || slices.Contains([]rune(" \t,[{:"), rest[i-1])
}

// contentLength counts the runes before a comment or the white space at the end of the line.
func contentLength(rest []rune) int {
	for i := 1; i < len(rest); i++ {
		if rest[i] == '#' && (rest[i-1] == ' ' || rest[i-1] == '\t') {
			rest = rest[:i]
			break
		}
	}
	return trimmedEnd(rest) - 1
}
