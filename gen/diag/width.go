package diag

import "unicode"

// wide are the runes that take two columns of a terminal: East Asian scripts, full-width forms and
// emoji.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1},
		{Lo: 0x2e80, Hi: 0x303e, Stride: 1},
		{Lo: 0x3041, Hi: 0xa4cf, Stride: 1},
		{Lo: 0xac00, Hi: 0xd7a3, Stride: 1},
		{Lo: 0xf900, Hi: 0xfaff, Stride: 1},
		{Lo: 0xfe30, Hi: 0xfe6f, Stride: 1},
		{Lo: 0xff00, Hi: 0xff60, Stride: 1},
		{Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x1f300, Hi: 0x1f64f, Stride: 1},
		{Lo: 0x1f680, Hi: 0x1f6ff, Stride: 1},
		{Lo: 0x1f900, Hi: 0x1f9ff, Stride: 1},
		{Lo: 0x20000, Hi: 0x3fffd, Stride: 1},
	},
}

// width is how many columns of a terminal a rune takes, as displayed.
func width(r rune) int {
	switch {
	case unsafeToPrint(r):
		return 1 // shown as the replacement character
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.Is(wide, r):
		return 2
	default:
		return 1
	}
}

// unsafeToPrint reports whether a rune would move the cursor of a terminal or change the direction
// of writing.
func unsafeToPrint(r rune) bool {
	return r != '\t' && unicode.IsControl(r) || IsDirectionControl(r)
}

// IsDirectionControl reports whether a rune changes the direction in which its neighbours are
// displayed, so that a reviewer would read something other than what the compiler does.
func IsDirectionControl(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
