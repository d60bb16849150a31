package catalogue

import (
	"strings"

	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/source"
)

const typeForms = "a type is T, T?, [T] or {string: T}"

// typeExpr reads a type, as text or as brackets of YAML. It returns nil if there is none.
func (d *decoder) typeExpr(n *source.Node) *typeExpr {
	switch {
	case n.Kind == source.Invalid:
		return nil
	case n.IsEmpty():
		d.badType(n.Pos, "a type is missing")
		return nil
	case n.Kind == source.List:
		return d.listExpr(n)
	case n.Kind == source.Mapping:
		return d.mapExpr(n)
	case n.Reading != source.Text:
		d.badType(n.Pos, "%s is %s, not a type", n.Text, n.Reading)
		return nil
	}
	return d.textExpr(n)
}

func (d *decoder) badType(pos diag.Pos, format string, args ...any) {
	d.add(diag.New(diag.TypeSyntax, pos, format, args...).WithHelp(typeForms))
}

func (d *decoder) listExpr(n *source.Node) *typeExpr {
	if len(n.Items) != 1 {
		d.badType(n.Pos, "a list is of one type, not of %d", len(n.Items))
		return nil
	}
	elem := d.typeExpr(n.Items[0])
	if elem == nil {
		return nil
	}
	return &typeExpr{kind: KindList, elem: elem, pos: n.Pos}
}

func (d *decoder) mapExpr(n *source.Node) *typeExpr {
	switch {
	case n.Get("string") == nil && len(n.Pairs) == 1 && isScalarName(n.Pairs[0].Key.Text):
		d.badType(n.Pairs[0].Key.Pos, "the keys of a map are of type string, not %s",
			n.Pairs[0].Key.Text)
		return nil
	case len(n.Pairs) != 1 || n.Get("string") == nil:
		d.add(diag.New(diag.TypeSyntax, n.Pos, "this is not a type").
			WithHelp("%s; with further keys, a field is {type: {string: T}, …}", typeForms))
		return nil
	}
	elem := d.typeExpr(n.Pairs[0].Value)
	if elem == nil {
		return nil
	}
	return &typeExpr{kind: KindMap, elem: elem, pos: n.Pos}
}

// textExpr reads a type from text, such as [[Money]]? in quotes.
func (d *decoder) textExpr(n *source.Node) *typeExpr {
	p := exprParser{text: n.Text, node: n.Pos}
	p.shift = n.Pos.End - n.Pos.Column - len([]rune(n.Text))
	t := p.parse(0)
	p.space()
	if p.problem == "" && p.at < len(p.text) {
		p.fail("%q is not expected here", p.text[p.at:])
	}
	if p.problem != "" {
		d.badType(p.problemPos, "%s", p.problem)
		return nil
	}
	return t
}

// exprParser reads T, T?, [T] and {string: T} by recursive descent.
type exprParser struct {
	text string
	at   int      // in bytes
	node diag.Pos // of the text
	// shift is 0 for plain text and 2 for text in quotes. If it is another number, the text has
	// escapes, and the columns within it are not known.
	shift      int
	problem    string // the first
	problemPos diag.Pos
}

// parse returns a type, or nil if there is a problem.
func (p *exprParser) parse(depth int) *typeExpr {
	p.space()
	start := p.at
	var t *typeExpr
	switch {
	case depth > source.MaxDepth:
		p.fail("nested more than %d levels deep", source.MaxDepth)
	case p.take("["):
		t = &typeExpr{kind: KindList, elem: p.parse(depth + 1)}
		p.expect("]")
	case p.take("{"):
		p.space()
		p.expect("string")
		p.space()
		p.expect(":")
		t = &typeExpr{kind: KindMap, elem: p.parse(depth + 1)}
		p.expect("}")
	default:
		t = p.name()
	}
	if p.problem != "" {
		return nil
	}
	t.pos = p.pos(start, p.at)
	p.space()
	t.optional = p.take("?")
	return t
}

func (p *exprParser) name() *typeExpr {
	end := p.at
	for end < len(p.text) && (p.text[end] == '_' || isAlphanumeric(p.text[end])) {
		end++
	}
	if end == p.at {
		p.fail("a type is missing in %q", p.text)
		return nil
	}
	t := &typeExpr{name: p.text[p.at:end]}
	t.kind = KindNamed
	if isScalarName(t.name) {
		t.kind = KindScalar
	}
	p.at = end
	return t
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (p *exprParser) space() {
	for p.at < len(p.text) && p.text[p.at] == ' ' {
		p.at++
	}
}

func (p *exprParser) take(s string) bool {
	if !strings.HasPrefix(p.text[p.at:], s) {
		return false
	}
	p.at += len(s)
	return true
}

func (p *exprParser) expect(s string) {
	if p.problem == "" {
		p.space()
		if !p.take(s) {
			p.fail("%q is missing in %q", s, p.text)
		}
	}
}

// fail notes a problem, unless there is one already.
func (p *exprParser) fail(format string, args ...any) {
	if p.problem == "" {
		p.problem = diag.New(diag.TypeSyntax, p.node, format, args...).Message
		p.problemPos = p.pos(p.at, p.at+1)
	}
}

// pos returns the place of a range of bytes of the text.
func (p *exprParser) pos(from, to int) diag.Pos {
	if p.shift != 0 && p.shift != 2 {
		return p.node
	}
	pos := p.node
	pos.Column += p.shift/2 + len([]rune(p.text[:from]))
	pos.End = pos.Column + max(1, len([]rune(p.text[from:min(to, len(p.text))])))
	return pos
}
