package source

import (
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/outboxgen/outboxgen/gen/diag"
)

// convert turns a YAML node into a Node, and reports what the language does not have.
func (l *loader) convert(y *yaml.Node, depth int) *Node {
	n := &Node{Pos: l.span(y)}
	if depth > MaxDepth {
		d := diag.New(diag.YAMLLimit, n.Pos, "nested more than %d levels deep", MaxDepth)
		l.report(d.WithHelp("declare a type under types and use its name"))
		return n
	}
	if !l.checkExtras(y, n.Pos) {
		return n
	}
	switch y.Kind {
	case yaml.ScalarNode:
		l.checkPlain(y, false)
		n.Kind, n.Text, n.Reading = Scalar, l.restored(y.Value), reading(y)
		if y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			l.blocks = append(l.blocks, y.Line)
		}
	case yaml.SequenceNode:
		n.Kind = List
		for _, item := range y.Content {
			n.Items = append(n.Items, l.convert(item, depth+1))
		}
	case yaml.MappingNode:
		n.Kind = Mapping
		l.convertPairs(y, n, depth)
	}
	return n
}

// convertPairs fills a mapping. If a key stands twice, it keeps the first one.
func (l *loader) convertPairs(y *yaml.Node, n *Node, depth int) {
	first := map[string]diag.Pos{}
	for i := 0; i+1 < len(y.Content); i += 2 {
		key := l.convertKey(y.Content[i], depth)
		value := l.convert(y.Content[i+1], depth+1)
		if key == nil {
			continue
		}
		if pos, ok := first[key.Text]; ok {
			d := diag.New(diag.YAMLDuplicateKey, key.Pos, "key %q is here a second time",
				key.Text)
			l.report(d.WithHelp("remove one of the two, or rename it").
				WithRelated(pos, "the first one"))
			continue
		}
		first[key.Text] = key.Pos
		n.Pairs = append(n.Pairs, Pair{Key: key, Value: value})
	}
}

// convertKey returns a mapping's key, or nil if it is not plain text.
func (l *loader) convertKey(y *yaml.Node, depth int) *Node {
	pos := l.span(y)
	switch {
	case y.Kind == yaml.ScalarNode && y.Tag == "!!merge":
		d := diag.New(diag.YAMLAnchor, pos, "merge keys are not part of the language")
		l.report(d.WithHelp("declare a type under types and use its name"))
		return nil
	case y.Kind == yaml.MappingNode || y.Kind == yaml.SequenceNode:
		l.report(diag.New(diag.YAMLKey, pos, "a key is a name, not %s", kindOf(y)).
			WithHelp("quote it if it is meant as text"))
		return nil
	}
	l.checkPlain(y, true)
	key := l.convert(y, depth+1)
	if key.Kind != Scalar {
		return nil
	}
	if key.IsEmpty() {
		l.report(diag.New(diag.YAMLKey, pos, "a key is missing before the colon"))
		return nil
	}
	if key.Reading != Text && !coordinate(key.Text) {
		d := diag.New(diag.YAMLQuote, pos, "the key %s is %s, and a key is text", key.Text,
			key.Reading)
		l.report(d.WithHelp("quote it: %q", key.Text))
	}
	key.Reading = Text
	return key
}

// coordinate reports whether a key is a plain y or n. These are common names of fields, and no
// reader of today takes such a key for a boolean.
func coordinate(key string) bool { return len(key) == 1 && strings.ContainsAny(key, "yYnN") }

func kindOf(y *yaml.Node) Kind {
	if y.Kind == yaml.SequenceNode {
		return List
	}
	return Mapping
}

// checkExtras reports anchors, aliases and tags. It returns false if no value is left.
func (l *loader) checkExtras(y *yaml.Node, pos diag.Pos) bool {
	switch {
	case y.Kind == yaml.AliasNode:
		d := diag.New(diag.YAMLAnchor, pos, "aliases are not part of the language")
		l.report(d.WithHelp("repeat the value here, or declare a type under types and use its " +
			"name"))
		return false
	case y.Anchor != "":
		d := diag.New(diag.YAMLAnchor, pos, "anchors are not part of the language")
		l.report(d.WithHelp("remove &%s", y.Anchor))
	case y.Style&yaml.TaggedStyle != 0 || l.at(y) == '!':
		d := diag.New(diag.YAMLTag, pos, "tags are not part of the language")
		l.report(d.WithHelp("remove the tag; quote the value if it is meant as text"))
	}
	return true
}

// at returns the rune at which a node begins, or 0.
func (l *loader) at(y *yaml.Node) rune {
	if line := l.line(y.Line); y.Column >= 1 && y.Column <= len(line) {
		return line[y.Column-1]
	}
	return 0
}

// sexagesimal matches what older readers take for a number or a time of day.
var sexagesimal = regexp.MustCompile(`^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$`)

// numeric matches numbers of any size (YAML 1.2.2, 10.3.2).
var numeric = regexp.MustCompile(
	`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$|^0o[0-7]+$|^0x[0-9a-fA-F]+$`,
)

var oldBools = map[string]bool{"y": true, "yes": true, "on": true, "n": true, "no": true,
	"off": true}

// reading says what a scalar may be taken for. The tag is the reader's own guess, as explicit tags
// have been refused.
func reading(y *yaml.Node) Reading {
	if y.Style&^yaml.TaggedStyle != 0 {
		return Text // quoted, or a block
	}
	switch y.Tag {
	case "!!null":
		if y.Value == "" {
			return Empty
		}
		return Null
	case "!!bool":
		return Bool
	case "!!int":
		return Integer
	case "!!float":
		return Float
	case "!!timestamp":
		return Time
	}
	if numeric.MatchString(y.Value) {
		return Float // beyond what the reader's own numbers hold: it takes 1e400 for text
	}
	if oldBools[strings.ToLower(y.Value)] || sexagesimal.MatchString(y.Value) || y.Value == "=" ||
		y.Value == "<<" {
		return Ambiguous
	}
	return Text
}
