package sqlc

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// CompileError is what sqlc found wrong with the SQL.
type CompileError struct {
	Problems []Problem
}

// Problem is one of sqlc's messages.
type Problem struct {
	File         string // as named in the input
	Line, Column int    // counted from 1
	Message      string
}

func (e *CompileError) Error() string {
	var lines []string
	for _, p := range e.Problems {
		lines = append(lines, fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message))
	}
	return "sqlc: " + strings.Join(lines, "\n")
}

var problemPattern = regexp.MustCompile(`(?m)^([^:\s]+):(\d+):(\d+): (.+?)\r?$`)

// asCompileError finds sqlc's messages in what it printed. If there are none, it returns the error
// as it is.
func asCompileError(err error) error {
	var failed *runError
	if !errors.As(err, &failed) {
		return err
	}
	var compile CompileError
	for _, m := range problemPattern.FindAllStringSubmatch(failed.stderr, -1) {
		line, lineErr := strconv.Atoi(m[2])
		column, columnErr := strconv.Atoi(m[3])
		if lineErr == nil && columnErr == nil {
			compile.Problems = append(compile.Problems,
				Problem{File: m[1], Line: line, Column: column, Message: m[4]})
		}
	}
	if len(compile.Problems) == 0 {
		return err
	}
	return &compile
}
