package source

import (
	"bytes"
	"fmt"

	"gopkg.in/yaml.v3"

	"github.com/outboxgen/outboxgen/gen/diag"
)

// Limits on a file. They are far above what people write, and far below what would be slow.
const (
	MaxBytes = 1 << 20
	MaxDepth = 32
)

// Load reads a file's bytes. Positions call it file; nothing is read from disk.
//
// Every problem is in the list. The result is nil if nothing of the file could be read. Otherwise
// it holds what could be read, so that its caller can find further problems. The root of an empty
// file is an empty scalar.
func Load(file string, data []byte) (*File, diag.List) {
	l := &loader{file: file}
	if len(data) > MaxBytes {
		pos := diag.Pos{File: file}
		l.report(diag.New(diag.YAMLLimit, pos, "the file has %d bytes, and %d are the limit",
			len(data), MaxBytes))
		return nil, l.list
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !l.checkCharacters(data) {
		return nil, l.list
	}
	l.lines = splitLines(data)
	l.checkDocuments()
	root, err := l.read()
	if err != nil {
		l.report(l.locate(err))
		return nil, l.list
	}
	out := &File{Root: &Node{Kind: Scalar, Reading: Empty,
		Pos: diag.Pos{File: file, Line: 1, Column: 1}}}
	if len(root.Content) > 0 {
		out.Root = l.convert(root.Content[0], 1)
	}
	text := l.blockLines()
	l.checkTabs(text)
	l.checkInvisible(text)
	out.Directives = l.directives(text)
	l.list.Sort()
	if l.hidden {
		return nil, l.list // Any further problem may follow from these.
	}
	return out, l.list
}

type loader struct {
	file   string
	lines  [][]rune
	mended int   // in how many lines question marks were replaced by standIn
	blocks []int // the lines on which block scalars begin
	hidden bool  // an invisible character stands in the place of a space
	list   diag.List
}

func (l *loader) report(d diag.Diagnostic) { l.list.Add(d) }

// parse is yaml.Unmarshal into a document node, which never panics.
func parse(data []byte) (root yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: the reader gave up: %v", r)
		}
	}()
	err = yaml.Unmarshal(data, &root)
	return root, err
}

// splitLines returns the lines without their ends. Only LF and CRLF end a line: checkCharacters has
// refused all others.
func splitLines(data []byte) [][]rune {
	lines := bytes.Split(data, []byte("\n"))
	out := make([][]rune, len(lines))
	for i, line := range lines {
		out[i] = []rune(string(bytes.TrimSuffix(line, []byte("\r"))))
	}
	return out
}

// line returns the runes of a line, counted from 1; none if there is no such line.
func (l *loader) line(n int) []rune {
	if n < 1 || n > len(l.lines) {
		return nil
	}
	return l.lines[n-1]
}
