package report

import (
	"regexp"
	"strings"
)

// failureLength is how many characters of an error a table has room for.
const failureLength = 200

// folders are those of an absolute path, behind what a path may stand behind.
var folders = regexp.MustCompile(`(^|[\s"'=(])/(?:[^\s/]+/)+`)

// failure is an error as far as others can do anything with it: the beginning of its first line,
// without the folders of this machine.
func failure(err error) string {
	line, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	text := []rune(folders.ReplaceAllString(line, "$1"))
	if len(text) > failureLength {
		text = append(text[:failureLength-1], '…')
	}
	return string(text)
}
