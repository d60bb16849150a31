package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/outboxgen/outboxgen/gen/output"
)

// file is a migration on disk.
type file struct {
	path string
	data []byte
}

// read returns the SQL files of the catalogue's directory of migrations, by name, and the migration
// of the last run if it stands elsewhere.
func (p *planner) read(names []string) ([]file, error) {
	var paths []string
	for _, name := range names {
		if strings.HasSuffix(name, ".sql") {
			paths = append(paths, path.Join(p.Catalogue.Migrations.Dir, name))
		}
	}
	if p.known != nil && !slices.Contains(paths, p.known.File) {
		paths = append(paths, p.known.File)
	}
	var files []file
	for _, at := range paths {
		data, err := p.readFile(at)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("migrations: %w", err)
		}
		files = append(files, file{at, data})
	}
	return files, nil
}

// readFile reads what is a file: a named pipe would never end.
func (p *planner) readFile(at string) ([]byte, error) {
	info, err := fs.Stat(p.Dir, at)
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	return fs.ReadFile(p.Dir, at)
}

// owner returns the other catalogue that a file belongs to, if any, and whether it makes this one's
// tables.
func (p *planner) owner(f file) (catalogue string, same bool) {
	for _, other := range p.Others {
		for _, m := range other.Migrations {
			if path.Base(m.File) == path.Base(f.path) || m.Hash == output.Hash(f.data) {
				return other.Catalogue, p.isOurs(f) || p.makesTables(f)
			}
		}
	}
	return "", false
}

// isOurs reports whether a file is the migration, whatever it is called, however it is commented,
// and for whichever tool it is written: the file itself, or one with the same statements.
func (p *planner) isOurs(f file) bool {
	if output.Same(f.data, p.text) || p.known != nil && output.Hash(f.data) == p.known.Hash {
		return true
	}
	up, down := directions(f.data)
	if len(down) > 0 && !bytes.Equal(down, trimmed(p.down)) {
		return false
	}
	return slices.ContainsFunc(hashes(up), func(hash string) bool {
		return hash == p.statements || p.known != nil && hash == p.known.Statements
	})
}

// looksLikeOurs reports whether a file must have been the migration before somebody edited it: it
// stands in the migration's place or has most of its lines. If no lock says what was written, so
// may any file that says it is generated.
func (p *planner) looksLikeOurs(f file) bool {
	name := path.Base(f.path)
	if p.known != nil {
		return name == path.Base(p.known.File) || p.makesTables(f)
	}
	return isOurName(name) || output.HasMarker(f.data, output.Marker) || p.makesTables(f)
}

// makesTables reports whether a file has more than half of the migration's lines.
func (p *planner) makesTables(f file) bool {
	lines := map[string]bool{}
	for line := range bytes.Lines(f.data) {
		lines[string(bytes.TrimSpace(line))] = true
	}
	all, shared := 0, 0
	for line := range bytes.Lines(p.text) {
		line = bytes.TrimSpace(line)
		if bytes.HasPrefix(line, []byte("--")) ||
			!bytes.Contains(line, []byte(`"`+p.Catalogue.Database.Prefix)) {
			continue // of the lines that name nothing, those of other tables are the same
		}
		all++
		if lines[string(line)] {
			shared++
		}
	}
	return 2*shared > all
}

// format is the tool that a file is written for. A file that no lock knows shows it.
func (p *planner) format(f file) string {
	switch {
	case p.known != nil && p.known.Hash == output.Hash(f.data):
		return p.known.Format
	case bytes.Contains(f.data, []byte("-- +goose Up")):
		return "goose"
	default:
		return "plain"
	}
}

// wayDown matches the line at which the tools' formats turn to the way down: goose, sql-migrate,
// dbmate, tern.
var wayDown = regexp.MustCompile(
	`(?mi)^[ \t]*--[ \t]*(\+goose[ \t]+down|\+migrate[ \t]+down|migrate:down|--[ \t]*create above / drop below).*$`)

// directions returns the statements of a file that go up, and those that go down, without anything
// else.
func directions(data []byte) (up, down []byte) {
	at := wayDown.FindIndex(data)
	if at == nil {
		return trimmed(data), nil
	}
	return trimmed(data[:at[0]]), trimmed(data[at[1]:])
}

func trimmed(text []byte) []byte { return bytes.TrimSpace(bare(text)) }

// hashes returns what Migration.Statements may be for trimmed statements: bare leaves a space at
// the end, and one before them if a comment was there.
func hashes(statements []byte) []string {
	text := string(statements) + " "
	return []string{output.Hash([]byte(text)), output.Hash([]byte(" " + text))}
}
