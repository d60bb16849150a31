// Package source reads YAML strictly, and keeps where everything stands.
//
// It refuses what makes YAML treacherous: duplicate keys, anchors, aliases, merge keys, tags,
// several documents, tabs in the indentation, and characters that hide what a file says. What a
// plain scalar may be taken for is kept with it, so that a caller can ask for quotes where text is
// meant.
package source

import "github.com/outboxgen/outboxgen/gen/diag"

// File is what Load reads.
type File struct {
	Root *Node
	// comments that speak to this tool, such as `# outboxgen:ignore …`, as scalars without the
	// number sign
	Directives []*Node
}

// Kind is the shape of a Node.
type Kind int

// The kinds of node. An Invalid one has been reported already: say nothing more of it.
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
	Text    string  // a scalar's text, as written where it is plain
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

// IsEmpty reports whether nothing stands where a value is expected: `key:` or `key: ~`.
func (n *Node) IsEmpty() bool {
	return n.Kind == Scalar && (n.Reading == Empty || n.Reading == Null)
}
