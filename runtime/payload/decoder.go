package payload

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// decoder walks through JSON that wellFormed has accepted, and relies on that.
type decoder struct {
	data []byte
	pos  int
}

// peek returns the next character that is not white space.
func (d *decoder) peek() byte {
	for {
		switch c := d.data[d.pos]; c {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return c
		}
	}
}

// null skips the next value where it is null, and says so.
func (d *decoder) null() bool {
	if d.peek() != 'n' {
		return false
	}
	d.pos += len("null")
	return true
}

// open enters an array or object where the next value is one.
func (d *decoder) open(bracket byte) bool {
	if d.peek() != bracket {
		return false
	}
	d.pos++
	return true
}

// more moves to the next element or name, or leaves the array or object at its end.
func (d *decoder) more(end byte) bool {
	switch d.peek() {
	case end:
		d.pos++
		return false
	case ',':
		d.pos++
	}
	return true
}

// name reads a member's name and the colon behind it. The result is only good until the decoder's data changes.
func (d *decoder) name() ([]byte, error) {
	name, err := unquote(d.value())
	d.peek()
	d.pos++
	return name, err
}

// value returns the next value as it stands in the data.
func (d *decoder) value() []byte {
	c := d.peek()
	start := d.pos
	switch c {
	case '"':
		d.pos = endOfString(d.data, d.pos)
	case '{', '[':
		d.pos, _ = scanNested(d.data, d.pos)
	default:
		for d.pos < len(d.data) && strings.IndexByte(",]} \t\r\n", d.data[d.pos]) < 0 {
			d.pos++
		}
	}
	return d.data[start:d.pos]
}

// scanNested returns where the array or object that begins at i or behind it ends, and how deep it is nested.
func scanNested(data []byte, i int) (end, deepest int) {
	depth := 0
	for ; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = endOfString(data, i) - 1
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1, deepest
			}
		}
	}
	return i, deepest
}

// endOfString returns where the string that begins at i ends.
func endOfString(data []byte, i int) int {
	for i++; data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// text reads a string. The result may be part of the data.
func (d *decoder) text() ([]byte, error) {
	if d.peek() != '"' {
		return nil, problem("not a string")
	}
	return unquote(d.value())
}

// number reads a number as it stands in the data.
func (d *decoder) number() ([]byte, error) {
	if c := d.peek(); c != '-' && (c < '0' || c > '9') {
		return nil, problem("not a number")
	}
	return d.value(), nil
}

// unquote returns the text of a JSON string. Where it has no escapes that is part of raw.
func unquote(raw []byte) ([]byte, error) {
	raw = raw[1 : len(raw)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw, nil
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++
		if raw[i] != 'u' {
			out = append(out, unescape(raw[i]))
			continue
		}
		r := hex4(raw[i+1:])
		i += 4
		if utf16.IsSurrogate(r) {
			if i+6 >= len(raw) || raw[i+1] != '\\' || raw[i+2] != 'u' {
				return nil, errSurrogate
			}
			if r = utf16.DecodeRune(r, hex4(raw[i+3:])); r == utf8.RuneError {
				return nil, errSurrogate
			}
			i += 6
		}
		out = utf8.AppendRune(out, r)
	}
	return out, nil
}

var errSurrogate = problem("half of a surrogate pair in a string")

// unescape returns what a backslash and c stand for (RFC 8259, 7).
func unescape(c byte) byte {
	if i := strings.IndexByte("bfnrt", c); i >= 0 {
		return "\b\f\n\r\t"[i]
	}
	return c
}

func hex4(digits []byte) rune {
	n, _ := strconv.ParseUint(string(digits[:4]), 16, 16)
	return rune(n)
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }
