package output

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"syscall"
)

// Changes is how the disk differs from a plan.
type Changes struct {
	Write  []Write
	Remove []string
	lock   *Write
}

// Write is a file that is missing or differs.
type Write struct {
	Path string
	Data []byte
	Old  []byte      // what is there; nil if it is missing
	mode fs.FileMode // of what is there
}

// Missing reports whether there is no such file yet.
func (w Write) Missing() bool { return w.Old == nil }

// Line returns the first line of the old file that differs, counted from 1; 0 if there is no old file.
func (w Write) Line() int {
	if w.Missing() {
		return 0
	}
	old, next := unix(w.Old), unix(w.Data)
	n := 0
	for n < len(old) && n < len(next) && old[n] == next[n] {
		n++
	}
	return 1 + bytes.Count(old[:n], []byte("\n"))
}

// All returns what is missing or differs, with the lock.
func (c *Changes) All() []Write {
	if c.lock == nil {
		return c.Write
	}
	return append(c.Write[:len(c.Write):len(c.Write)], *c.lock)
}

// Compare finds out how the directory differs from the plan. The error names everything that is in the way: files that were not
// generated, symbolic links, directories.
func Compare(dir Dir, plan Plan) (*Changes, error) {
	if err := plan.validate(); err != nil {
		return nil, err
	}
	var (
		changes Changes
		errs    []error
	)
	for _, f := range plan.Files {
		w, err := compareFile(dir, f)
		if err != nil {
			errs = append(errs, err)
		} else if w != nil {
			changes.Write = append(changes.Write, *w)
		}
	}
	lock, err := compareFile(dir, plan.Lock)
	changes.lock = lock
	errs = append(errs, err)
	for _, name := range plan.Stale {
		stale, err := isStale(dir, name)
		if err != nil {
			errs = append(errs, err)
		} else if stale {
			changes.Remove = append(changes.Remove, name)
		}
	}
	return &changes, errors.Join(errs...)
}

// compareFile returns nil where the file is as it should be.
func compareFile(dir Dir, f File) (*Write, error) {
	info, err := dir.Lstat(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Write{Path: f.Path, Data: f.Data}, nil
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("%s: a file stands where a directory is needed: move it away", dir.Display(firstFile(dir, f.Path)))
	}
	if err != nil {
		return nil, dir.describe(f.Path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %s is in the way of a generated file: move it away", dir.Display(f.Path), kind(info.Mode()))
	}
	old, err := dir.ReadFile(f.Path)
	if err != nil {
		return nil, dir.describe(f.Path, err)
	}
	if Same(old, f.Data) {
		return nil, nil
	}
	if f.Marker != "" && !HasMarker(old, f.Marker) {
		return nil, fmt.Errorf("%s: not overwritten, since it lacks the comment %q: move or rename it", dir.Display(f.Path), f.Marker)
	}
	return &Write{Path: f.Path, Data: f.Data, Old: old, mode: info.Mode().Perm()}, nil
}

// isStale reports whether an earlier run's file is still there, and still says that it is generated.
func isStale(dir Dir, name string) (bool, error) {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	if err != nil {
		return false, dir.describe(name, err)
	}
	if !info.Mode().IsRegular() {
		return false, nil
	}
	data, err := dir.ReadFile(name)
	if err != nil {
		return false, dir.describe(name, err)
	}
	return isGenerated(data), nil
}

// firstFile returns the part of the path that is not a directory.
func firstFile(dir Dir, name string) string {
	for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
		if info, err := dir.Lstat(parent); err == nil && !info.IsDir() {
			return parent
		}
	}
	return path.Dir(name)
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	default:
		return "a special file"
	}
}
