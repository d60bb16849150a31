package output

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"syscall"
)

// Changes is how the disk differs from a plan.
type Changes struct {
	Write       []Write
	remove      []Write
	stale       []string // all of the plan's
	begun, lock *Write
	sums        []Write
}

// Write is a file that is missing or differs.
type Write struct {
	Path    string
	Data    []byte
	Old     []byte      // what is there; nil if it is missing
	mode    fs.FileMode // of what is there
	removal bool        // the file is to be removed
	// sum says that the file differs from what an earlier run has made, and that it is not known
	// what this run would make.
	sum bool
}

// Missing reports whether the file does not exist yet.
func (w Write) Missing() bool { return w.Old == nil }

// BySum reports whether the file was compared with what an earlier run has made, since what this
// one would make is not known.
func (w Write) BySum() bool { return w.sum }

// Line returns the first line of the old file that differs, counted from 1; 0 if there is none or
// if it is not known.
func (w Write) Line() int {
	if w.Missing() || w.sum {
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
	all := append(c.Write[:len(c.Write):len(c.Write)], c.sums...)
	if c.lock != nil {
		all = append(all, *c.lock)
	}
	return all
}

// Remove returns the paths of what is to be removed.
func (c *Changes) Remove() []string {
	var names []string
	for _, w := range c.remove {
		names = append(names, w.Path)
	}
	return names
}

// Compare finds out how the directory differs from the plan. The error names everything that is in
// the way: files that were not generated, symbolic links, directories, special files. The changes
// are then those to all other files.
func Compare(dir Dir, plan Plan) (*Changes, error) {
	if err := plan.validate(); err != nil {
		return nil, err
	}
	c := &Changes{stale: plan.Stale}
	var errs []error
	for _, f := range plan.Files {
		w, err := compareFile(dir, f)
		if w != nil {
			c.Write = append(c.Write, *w)
		}
		errs = append(errs, err)
	}
	for _, name := range slices.Sorted(maps.Keys(plan.Sums)) {
		w, err := compareSum(dir, name, plan.Sums[name])
		if w != nil {
			c.sums = append(c.sums, *w)
		}
		errs = append(errs, err)
	}
	for _, name := range plan.Stale {
		w, err := compareStale(dir, name)
		if w != nil {
			c.remove = append(c.remove, *w)
		}
		errs = append(errs, err)
	}
	if plan.Lock.Path != "" {
		lock, err := compareFile(dir, plan.Lock)
		c.lock, errs = lock, append(errs, err)
	}
	if c.lock != nil && plan.Begun != nil && len(c.Write)+len(c.remove) > 0 {
		c.begun, _ = compareFile(dir, File{Path: plan.Lock.Path, Data: plan.Begun})
	}
	return c, errors.Join(errs...)
}

// compareFile returns nil if the file is as it should be.
func compareFile(dir Dir, f File) (*Write, error) {
	w, err := current(dir, f.Path)
	if err != nil || !w.Missing() && Same(w.Old, f.Data) {
		return nil, err
	}
	// An empty file may be overwritten: some file systems leave one after a power failure.
	if f.Marker != "" && len(w.Old) > 0 && !HasMarker(w.Old, f.Marker) {
		return nil, fmt.Errorf(
			"%s: not overwritten, since it lacks the comment %q: move or rename it",
			dir.Display(f.Path), f.Marker)
	}
	w.Data = f.Data
	return w, nil
}

// compareSum returns nil if the file is still as an earlier run has made it.
func compareSum(dir Dir, name, sum string) (*Write, error) {
	w, err := current(dir, name)
	if err != nil || !w.Missing() && Hash(w.Old) == sum {
		return nil, err
	}
	w.sum = true
	return w, nil
}

// current returns the file at the path of a generated one, or an error that says what is in the
// way.
func current(dir Dir, name string) (*Write, error) {
	w := &Write{Path: name}
	info, err := dir.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return w, nil
	case errors.Is(err, syscall.ENOTDIR):
		return nil, fmt.Errorf("%s: a file stands where a directory is needed: move it away",
			dir.Display(firstFile(dir, name)))
	case err != nil:
		return nil, dir.describe(name, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: %s is in the way of a generated file: move it away",
			dir.Display(name), Kind(info.Mode()))
	}
	w.mode = info.Mode().Perm()
	if w.Old, err = fs.ReadFile(dir.FS(), name); err != nil {
		return nil, dir.describe(name, err)
	}
	return w, nil
}

// compareStale returns an earlier run's file that is still there, and still says that it is
// generated.
func compareStale(dir Dir, name string) (*Write, error) {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, dir.describe(name, err)
	}
	if readable(info) != nil {
		return nil, nil
	}
	old, err := fs.ReadFile(dir.FS(), name)
	if err != nil {
		return nil, dir.describe(name, err)
	}
	if !isGenerated(old) {
		return nil, nil
	}
	return &Write{Path: name, Old: old, mode: info.Mode().Perm(), removal: true}, nil
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
