package payload

import (
	"cmp"
	"fmt"
	"regexp"
	"unicode/utf8"
)

// Generated Validate methods call the functions of this file. Each gets the member's name in JSON,
// and returns nil if the member is absent (a nil pointer) or keeps the constraint, and an *Error
// otherwise. A negative maximum means no limit.

// Check returns the first error that is not nil.
func Check(errs ...error) error { return cmp.Or(errs...) }

// Length bounds the number of characters (Unicode code points) of *v.
func Length[S ~string](field string, v *S, minimum, maximum int) error {
	if v == nil {
		return nil
	}
	if minimum <= 0 && len(*v) <= maximum { // a character has at least one byte
		return nil
	}
	return between(field, utf8.RuneCountInString(string(*v)), minimum, maximum, "characters")
}

// Size bounds the number of bytes of v. Generated code does not call it if an optional member
// is nil.
func Size(field string, v []byte, minimum, maximum int) error {
	return between(field, len(v), minimum, maximum, "bytes")
}

// Items bounds the number n of elements of a list or entries of a map. Generated code does not
// call it if an optional member is nil.
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

// Pattern checks that re matches anywhere in *v, unless the pattern has anchors.
func Pattern[S ~string](field string, v *S, re *regexp.Regexp) error {
	if v == nil || re.MatchString(string(*v)) {
		return nil
	}
	return &Error{Path: field, Problem: "does not match " + re.String()}
}

// AtLeast checks that *v >= minimum.
func AtLeast[N ~int32 | ~int64 | ~float64](field string, v *N, minimum N) error {
	if v == nil || *v >= minimum {
		return nil
	}
	return &Error{Path: field, Problem: fmt.Sprintf("less than %v", minimum)}
}

// AtMost checks that *v <= maximum.
func AtMost[N ~int32 | ~int64 | ~float64](field string, v *N, maximum N) error {
	if v == nil || *v <= maximum {
		return nil
	}
	return &Error{Path: field, Problem: fmt.Sprintf("greater than %v", maximum)}
}
