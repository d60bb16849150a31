// Package source reads YAML strictly, and keeps the position of everything.
//
// It refuses what people easily misread in YAML: duplicate keys, anchors, aliases, merge keys,
// tags, several documents, tabs in the indentation, and characters that hide what a file says. Each
// plain scalar says what a reader may take it for, so that a caller can ask for quotes if text is
// meant.
package source

import "github.com/outboxgen/outboxgen/gen/diag"

// File is what Load reads.
type File struct {
	Root *Node
	// Directives are comments for this tool, such as `# outboxgen:ignore …`: scalars without the
	// number sign.
	Directives []*Node
}

// Kind is the shape of a Node.
type Kind int

// The kinds of node. An Invalid one has been reported already, and needs no further diagnostic.
const (
	Invalid Kind = iota
	Scalar
	List
	Mapping
)

// String returns the word for people: a scalar is "a value".
func (k Kind) String() string {
	switch k {
	case Scalar:
		return "a value"
	case List:
		return "a list"
	case Mapping:
		return "a mapping"
	default:
		return "something unreadable"
	}
}

// Reading is what a YAML reader takes a scalar for.
type Reading int

// The readings of a scalar. Quoted and block scalars are always Text.
const (
	Text      Reading = iota
	Empty             // nothing stands there
	Null              // ~ or null
	Bool              // true, false and their other spellings
	Integer           // decimal, octal, hexadecimal, with underscores
	Float             // with a point, an exponent, or too large for an integer
	Time              // 2026-11-30
	Ambiguous         // text to this reader, something else to others: no, on, 12:30
)

// String returns the reading for people, with its article.
func (r Reading) String() string {
	return [...]string{"text", "empty", "null", "a boolean", "a number", "a number", "a date",
		"not text to every YAML reader"}[r]
}

// Node is a piece of a file.
type Node struct {
	Kind    Kind
	Text    string  // a scalar's text; as written if it is plain
	Reading Reading // a scalar's
	Items   []*Node // a list's
	Pairs   []Pair  // a mapping's, in the order of the file, without duplicates
	Pos     diag.Pos
}

// Pair is an entry of a mapping. The key is a scalar that reads as Text.
type Pair struct {
	Key   *Node
	Value *Node
}

// Get returns a mapping's pair of this key, or nil.
func (n *Node) Get(key string) *Pair {
	for i := range n.Pairs {
		if n.Pairs[i].Key.Text == key {
			return &n.Pairs[i]
		}
	}
	return nil
}

// IsEmpty reports whether a value is missing: `key:` or `key: ~`.
func (n *Node) IsEmpty() bool {
	return n.Kind == Scalar && (n.Reading == Empty || n.Reading == Null)
}
