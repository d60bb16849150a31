package payload

import (
	"cmp"
	"fmt"
	"regexp"
	"unicode/utf8"
)

// The functions of this file are the bodies of generated Validate methods. Each names the member by
// its name in JSON, passes where the member is absent (a nil pointer), and returns an *Error
// otherwise. A maximum below 0 is none.

// Check returns the first error that is not nil.
func Check(errs ...error) error { return cmp.Or(errs...) }

// Length bounds the number of characters (Unicode code points) of *v.
func Length[S ~string](field string, v *S, minimum, maximum int) error {
	if v == nil {
		return nil
	}
	if minimum <= 0 && len(*v) <= maximum { // a character has a byte at least
		return nil
	}
	return between(field, utf8.RuneCountInString(string(*v)), minimum, maximum, "characters")
}

// Size bounds the number of bytes of v. It cannot know of an absent one: an optional member is
// checked where it is not nil.
func Size(field string, v []byte, minimum, maximum int) error {
	return between(field, len(v), minimum, maximum, "bytes")
}

// Items bounds the number n of elements of a list or entries of a map. It cannot know of an absent
// one either.
func Items(field string, n, minimum, maximum int) error {
	return between(field, n, minimum, maximum, "items")
}

func between(field string, n, minimum, maximum int, unit string) error {
	switch {
	case n < minimum:
		return &Error{Path: field, Problem: fmt.Sprintf("fewer than %d %s", minimum, unit)}
	case maximum >= 0 && n > maximum:
		return &Error{Path: field, Problem: fmt.Sprintf("more than %d %s", maximum, unit)}
	}
	return nil
}

// Pattern asks for a match of re anywhere in *v; anchors are the pattern's own business.
func Pattern[S ~string](field string, v *S, re *regexp.Regexp) error {
	if v == nil || re.MatchString(string(*v)) {
		return nil
	}
	return &Error{Path: field, Problem: "does not match " + re.String()}
}

// AtLeast asks for *v >= minimum.
func AtLeast[N ~int32 | ~int64 | ~float64](field string, v *N, minimum N) error {
	if v == nil || *v >= minimum {
		return nil
	}
	return &Error{Path: field, Problem: fmt.Sprintf("less than %v", minimum)}
}

// AtMost asks for *v <= maximum.
func AtMost[N ~int32 | ~int64 | ~float64](field string, v *N, maximum N) error {
	if v == nil || *v <= maximum {
		return nil
	}
	return &Error{Path: field, Problem: fmt.Sprintf("greater than %v", maximum)}
}
