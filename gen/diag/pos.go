// Package diag holds what the compiler has to say of a catalogue: diagnostics with positions, the
// table of rules, and printers.
package diag

// Pos is a place in a file. Line and Column start at 1. Column and End count runes; End is
// exclusive, and 0 if only the start is known.
type Pos struct {
	File   string
	Line   int
	Column int
	End    int
}
