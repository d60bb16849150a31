package output

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
)

// Apply makes the changes: it writes every new file beside its place, then moves them there one by one, then removes what is
// stale, then moves the lock. An error while writing leaves the directory as it was; one after that leaves every file whole, and
// another run completes the work.
func (c *Changes) Apply(dir Dir) error {
	s := &stage{dir: dir}
	defer s.discard()
	for _, w := range c.All() {
		if err := s.write(w); err != nil {
			return err
		}
	}
	for i, w := range c.Write {
		if err := s.commit(w.Path); err != nil {
			return fmt.Errorf("%w (%d of %d files are written: run it again)", err, i, len(c.Write))
		}
	}
	for _, name := range c.Remove {
		if err := remove(dir, name); err != nil {
			return err
		}
	}
	if c.lock != nil {
		return s.commit(c.lock.Path)
	}
	return nil
}

// stage holds new files under temporary names until all are written.
type stage struct {
	dir       Dir
	temporary map[string]string // by path
	made      []string          // directories, the outer before the inner
}

// write writes a file beside its place. A name with a leading dot is one that Go's tools pass over.
func (s *stage) write(w Write) error {
	if err := s.mkdir(path.Dir(w.Path)); err != nil {
		return err
	}
	name := path.Join(path.Dir(w.Path), "."+path.Base(w.Path)+"."+rand.Text()[:8]+".tmp")
	f, err := s.dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return s.dir.describe(w.Path, err)
	}
	if s.temporary == nil {
		s.temporary = map[string]string{}
	}
	s.temporary[w.Path] = name
	_, err = f.Write(w.Data)
	if err == nil && !w.Missing() {
		err = f.Chmod(w.mode)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return s.dir.describe(w.Path, err)
	}
	return nil
}

// mkdir makes a directory and those above it, and remembers which were missing.
func (s *stage) mkdir(name string) error {
	if name == "." {
		return nil
	}
	if _, err := s.dir.Stat(name); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return s.dir.describe(name, err)
	}
	if err := s.mkdir(path.Dir(name)); err != nil {
		return err
	}
	if err := s.dir.Mkdir(name, 0o755); err != nil {
		return s.dir.describe(name, err)
	}
	s.made = append(s.made, name)
	return nil
}

// commit moves a file to its place.
func (s *stage) commit(name string) error {
	if err := s.dir.Rename(s.temporary[name], name); err != nil {
		return s.dir.describe(name, err)
	}
	delete(s.temporary, name)
	return nil
}

// discard removes what was staged and not committed. A directory that is in use stays.
func (s *stage) discard() {
	for _, name := range s.temporary {
		_ = s.dir.Remove(name)
	}
	for _, name := range slices.Backward(s.made) {
		_ = s.dir.Remove(name)
	}
}

// remove removes a file, and the directories above it that this leaves empty.
func remove(dir Dir, name string) error {
	if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return dir.describe(name, err)
	}
	for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
		if dir.Remove(parent) != nil {
			break
		}
	}
	return nil
}
