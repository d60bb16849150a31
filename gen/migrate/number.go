package migrate

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
)

// suffix returns the name of a migration without its number. Only the number depends on the other
// files of the directory, so messages can name a migration that is not written yet.
func suffix(id string) string { return "_outboxgen_" + id + ".sql" }

// numbered matches the name of a migration: up to 18 digits (timestamps have 14), then anything.
// goose has migrations in Go, too.
var numbered = regexp.MustCompile(`^([0-9]{1,18})[_.-].*\.(?:sql|go)$`)

// isNameOf reports whether a file's name is one that outboxgen gives to a migration.
func isNameOf(name, id string) bool {
	return numbered.MatchString(name) && strings.TrimLeft(name, "0123456789") == suffix(id)
}

// list returns the names of the files in a directory, sorted. It returns none if the directory does
// not exist.
func list(dir fs.FS, name string) ([]string, error) {
	entries, err := fs.ReadDir(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// next returns one more than the highest number of the migrations, padded to the same width.
func next(names []string) string {
	var highest, width = int64(0), 5
	for _, name := range names {
		m := numbered.FindStringSubmatch(name)
		if m == nil || strings.HasSuffix(name, "_test.go") {
			continue
		}
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err == nil && n >= highest {
			highest, width = n, len(m[1])
		}
	}
	return fmt.Sprintf("%0*d", width, highest+1)
}
