package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/outboxgen/outboxgen/gen"
	"github.com/outboxgen/outboxgen/gen/lock"
)

// neighbours returns the other catalogues that may write into a directory below the catalogue's:
// those whose lock stands in it or above it, up to the top of the repository, since a catalogue
// writes below itself only.
func (c *compile) neighbours(name string) ([]gen.Neighbour, error) {
	home := filepath.Dir(c.path)
	start := realPath(below(home, name))
	var found []gen.Neighbour
	for dir := start; ; dir = filepath.Dir(dir) {
		l, err := lockIn(dir)
		if err != nil {
			return nil, err
		}
		if l != nil && !sameDir(dir, home) {
			n := gen.Neighbour{Catalogue: c.nameOf(filepath.Join(dir, l.Catalogue)), Lock: l}
			n.Has = func(theirs, ours string) bool {
				return sameDir(below(dir, theirs), below(home, ours))
			}
			found = append(found, n)
		}
		if isTop(dir) {
			return found, nil
		}
	}
}

// lockIn reads the lock of a catalogue that is still in a directory.
func lockIn(dir string) (*lock.Lock, error) {
	file := filepath.Join(dir, lock.Name)
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil // There is no lock that can be read.
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	l, err := lock.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.ToSlash(dir), err)
	}
	if _, err := os.Stat(below(dir, l.Catalogue)); l.Catalogue == "" || err != nil {
		return nil, nil // The lock was left behind when its catalogue moved away.
	}
	return l, nil
}

// below returns the path of a name with slashes.
func below(dir, name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }

// isTop reports whether a directory is the root of a repository or of the file system.
func isTop(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	return err == nil || dir == filepath.Dir(dir)
}

// sameDir reports whether two paths lead to one directory, through symbolic links and in either
// case if the file system does not tell them apart. Directories that do not exist yet are
// compared by name.
func sameDir(a, b string) bool {
	one, errA := os.Stat(a)
	other, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return os.SameFile(one, other)
	}
	return errA != nil && errB != nil && realPath(a) == realPath(b)
}

// realPath resolves the symbolic links of the part of a path that exists.
func realPath(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) && path != filepath.Dir(path) {
		return filepath.Join(realPath(filepath.Dir(path)), filepath.Base(path))
	}
	if err != nil {
		return path
	}
	return real
}

// nameOf returns what messages call a file: its path relative to the directory that the command
// runs in, if there is one.
func (c *compile) nameOf(file string) string {
	if relative, err := filepath.Rel(realPath(absolute(c.env, ".")), file); err == nil {
		return filepath.ToSlash(relative)
	}
	return filepath.ToSlash(file)
}
