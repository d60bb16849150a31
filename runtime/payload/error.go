package payload

import (
	"errors"
	"strings"
)

// Error says what is wrong with a payload, and where. It contains no values and no
// keys of maps, so that it may be logged and stored.
type Error struct {
	// Path leads to the member by its names in JSON, such as lines[2].sku. Every key of a map is
	// written as *: labels[*]. It is empty if the error concerns the whole payload.
	Path string
	// Problem continues a sentence that begins with the path, such as "longer than 64 characters".
	Problem string
}

func (e *Error) Error() string {
	if e.Path == "" {
		return "payload: " + e.Problem
	}
	return "payload: " + e.Path + ": " + e.Problem
}

// problem returns an Error without a path; within adds the path as callers return it.
func problem(text string) error { return &Error{Problem: text} }

// within prepends a step to the path of err: a member's name, or an index or * in brackets.
func within(step string, err error) error {
	e := asError(err)
	if e.Path != "" && !strings.HasPrefix(e.Path, "[") {
		step += "."
	}
	return &Error{Path: step + e.Path, Problem: e.Problem}
}

// asError hides the text of any other type of error, since it may quote a value.
func asError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Problem: "not valid"}
}
