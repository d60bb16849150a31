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
	hash string   // of the file
	up   []string // what the hash of its statements may be
	down []byte   // the statements that undo it, if it has any
}

func newFile(path string, data []byte) file {
	up, down := directions(data)
	return file{path: path, data: data, hash: output.Hash(data), up: hashes(up), down: down}
}

// read returns the SQL files of the catalogue's directory of migrations, by name, and the
// migrations of the last run that are elsewhere.
func (p *planner) read() ([]file, error) {
	var paths []string
	for _, name := range p.names {
		if strings.HasSuffix(name, ".sql") {
			paths = append(paths, path.Join(p.Catalogue.Migrations.Dir, name))
		}
	}
	for _, known := range p.Known {
		if !slices.Contains(paths, known.File) {
			paths = append(paths, known.File)
		}
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
		f := newFile(at, data)
		owner, same := p.owner(f)
		if same {
			return nil, p.shared(f, owner)
		}
		if owner == "" {
			files = append(files, f)
		}
	}
	return files, nil
}

// readFile reads a regular file only: reading a named pipe would never end.
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
			if path.Base(m.File) == path.Base(f.path) || m.Hash == f.hash {
				return other.Catalogue, slices.ContainsFunc(p.steps, func(s *step) bool {
					return s.isIn(f) || p.madeBy(s, f)
				})
			}
		}
	}
	return "", false
}

// locate finds a migration on disk by what it contains, or else a file that was the migration
// before it was edited. It returns nil if there is neither.
func (p *planner) locate(s *step) (*file, error) {
	var ours, edited []file
	for _, f := range p.files {
		switch {
		case s.isIn(f):
			ours = append(ours, f)
		case !p.isKnown(f) && p.looksLike(s, f):
			edited = append(edited, f)
		}
	}
	all := append(p.inPlaceFirst(s, ours), p.inPlaceFirst(s, edited)...)
	for _, f := range all[min(1, len(all)):] {
		if path.Dir(f.path) == path.Clean(p.Catalogue.Migrations.Dir) &&
			(s.isIn(f) || p.madeBy(s, f)) {
			return nil, p.twice(s, all[0], f)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	return &all[0], nil
}

// inPlaceFirst puts the file where the migration belongs before the others.
func (p *planner) inPlaceFirst(s *step, files []file) []file {
	if s.known == nil {
		return files
	}
	place := path.Join(p.Catalogue.Migrations.Dir, path.Base(s.known.File))
	at := slices.IndexFunc(files, func(f file) bool { return f.path == place })
	if at < 0 {
		return files
	}
	return slices.Concat(files[at:at+1], files[:at], files[at+1:])
}

// isKnown reports whether a file is one of outboxgen's migrations.
func (p *planner) isKnown(f file) bool {
	is := func(s *step) bool { return s.isIn(f) }
	return slices.ContainsFunc(p.steps, is) || slices.ContainsFunc(p.others, is)
}

// isIn reports whether a file is the migration, whatever it is called, however it is commented, and
// for whichever tool it is written: the file itself, or one with the same statements.
func (s *step) isIn(f file) bool {
	if output.Same(f.data, s.text) || s.known != nil && f.hash == s.known.Hash {
		return true
	}
	if len(f.down) > 0 && !bytes.Equal(f.down, s.down) {
		return false
	}
	return slices.Contains(f.up, s.statements) ||
		s.known != nil && slices.Contains(f.up, s.known.Statements)
}

// looksLike reports whether a file must have been the migration before somebody edited it: it has
// the name that the lock records; or the lock does not list the migration, and the file has a name
// that outboxgen gives to it and the marker of generated files; or it has most of its lines.
func (p *planner) looksLike(s *step, f file) bool {
	name := path.Base(f.path)
	if s.known != nil {
		return name == path.Base(s.known.File) || p.madeBy(s, f)
	}
	return isNameOf(name, s.ID()) && output.HasMarker(f.data, output.Marker) || p.madeBy(s, f)
}

// madeBy reports whether a file has more than half of the migration's lines.
func (p *planner) madeBy(s *step, f file) bool {
	lines := map[string]bool{}
	for line := range bytes.Lines(f.data) {
		lines[string(bytes.TrimSpace(line))] = true
	}
	all, shared := 0, 0
	for line := range bytes.Lines(s.text) {
		line = bytes.TrimSpace(line)
		if bytes.HasPrefix(line, []byte("--")) ||
			!bytes.Contains(line, []byte(`"`+p.Catalogue.Database.Prefix)) {
			continue // a line without a name of ours is the same for other tables
		}
		all++
		if lines[string(line)] {
			shared++
		}
	}
	return 2*shared > all
}

// format returns the tool that a file is written for: the one in the lock or, if the lock does not
// list the file as it is, the one that its content shows.
func (p *planner) format(s *step, f file) string {
	switch {
	case s.known != nil && s.known.Hash == f.hash:
		return s.known.Format
	case bytes.Contains(f.data, []byte("-- +goose Up")):
		return "goose"
	default:
		return "plain"
	}
}

// wayDown matches the line after which the statements that undo a migration follow, in the formats
// of goose, sql-migrate, dbmate and tern.
var wayDown = regexp.MustCompile(
	`(?mi)^[ \t]*--[ \t]*(\+goose[ \t]+down|\+migrate[ \t]+down|migrate:down|--[ \t]*create above / drop below).*$`)

// directions returns the statements of a file that apply the migration, and those that undo it,
// without anything else.
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
