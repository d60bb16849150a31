package payload

import (
	"errors"
	"strings"
)

// Error says what is wrong with a payload, and where. It never contains a value of the payload, and
// of a map no key, so that it may be logged and stored.
type Error struct {
	// Path leads to the member by its names in JSON, such as lines[2].sku. Every key of a map is
	// written as *: labels[*]. It is empty where the payload as a whole is meant.
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

// problem makes an Error about the value at hand; within adds the path while it travels up.
func problem(text string) error { return &Error{Problem: text} }

// within puts a step before the path of err: a member's name, or an index or key in brackets.
func within(step string, err error) error {
	e := asError(err)
	if e.Path != "" && !strings.HasPrefix(e.Path, "[") {
		step += "."
	}
	return &Error{Path: step + e.Path, Problem: e.Problem}
}

// asError hides the text of an error that is not ours, for it may quote a value.
func asError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Problem: "not valid"}
}
