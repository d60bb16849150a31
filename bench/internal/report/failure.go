package report

import (
	"regexp"
	"strings"
)

// failureLength is how many characters of an error a table shows.
const failureLength = 200

// folders matches the directories of an absolute path, and what may precede a path.
var folders = regexp.MustCompile(`(^|[\s"'=(])/(?:[^\s/]+/)+`)

// failure returns the part of an error that is useful to readers: the beginning of its first line,
// without the directories of this machine.
func failure(err error) string {
	line, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	text := []rune(folders.ReplaceAllString(line, "$1"))
	if len(text) > failureLength {
		text = append(text[:failureLength-1], '…')
	}
	return string(text)
}
