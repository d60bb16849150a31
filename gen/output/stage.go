package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"syscall"
)

// StageName is the name of the directories in which new files wait to be moved to their places: one
// beside the lock and one in each directory that is written to, so that a move is a rename within a
// directory's own file system. Go's tools pass over it for its leading dot, and git for the
// .gitignore in it.
const StageName = ".outboxgen.tmp"

const (
	ignoreName  = ".gitignore"
	journalName = "journal.json"
)

var ignoreText = []byte("# " + Marker + "\n*\n")

// journal stands in the stage beside the lock before anything else is made, and says what to remove
// after a run that was killed.
type journal struct {
	Stages []string // the directories with a stage of their own
	Made   []string // the directories that were missing, the outer before the inner
}

// Scratch makes a directory for temporary files of programs, which Clean removes, and returns its
// path on the system.
func (d Dir) Scratch() (string, error) {
	const name = StageName + "/scratch"
	err := d.makeStage(".")
	if err == nil {
		err = d.Mkdir(name, 0o755)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", d.describe(name, err)
	}
	return path.Join(d.Root.Name(), name), nil
}

// Interrupted reports whether a run that was killed has left files behind. While the directory is
// held, no other run is at work.
func (d Dir) Interrupted() bool {
	ours, err := d.isStage(".")
	return ours && err == nil
}

// Clean removes what a killed run has left behind, and what this run does not need any more.
func (d Dir) Clean() error {
	if ours, err := d.isStage("."); err != nil || !ours {
		return err
	}
	var j journal
	if data, err := fs.ReadFile(d.FS(), path.Join(StageName, journalName)); err == nil {
		_ = json.Unmarshal(data, &j) // If it is incomplete, nothing that it names exists yet.
	}
	var errs []error
	for _, dir := range j.Stages {
		errs = append(errs, d.removeStage(dir))
	}
	for _, dir := range slices.Backward(j.Made) {
		_ = d.Remove(dir) // A directory that is in use stays.
	}
	if err := errors.Join(errs...); err != nil {
		return err // The journal stays.
	}
	return d.removeStage(".")
}

// isStage reports whether a directory has a stage of outboxgen's. It is an error if something else
// stands there. A stage that was just being made, or removed, holds no more than its .gitignore.
func (d Dir) isStage(dir string) (bool, error) {
	at := path.Join(dir, StageName)
	info, err := d.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	if err != nil {
		return false, d.describe(at, err)
	}
	var entries []fs.DirEntry
	if info.IsDir() {
		if entries, err = fs.ReadDir(d.FS(), at); err != nil {
			return false, d.describe(at, err)
		}
		if len(entries) == 0 {
			return true, nil
		}
	}
	ignore, err := fs.ReadFile(d.FS(), path.Join(at, ignoreName))
	whole := bytes.Equal(ignore, ignoreText)
	if info.IsDir() && err == nil &&
		(whole || len(entries) == 1 && bytes.HasPrefix(ignoreText, ignore)) {
		return true, nil
	}
	return false,
		fmt.Errorf("%s: not overwritten, since it is not outboxgen's, which needs this name for "+
			"temporary files: move or rename it", d.Display(at))
}

// makeStage makes a directory's stage, if it is not there yet.
func (d Dir) makeStage(dir string) error {
	if ours, err := d.isStage(dir); err != nil {
		return err
	} else if ours {
		data, err := d.ReadFile(path.Join(dir, StageName, ignoreName))
		if err == nil && bytes.Equal(data, ignoreText) {
			return nil
		}
		if err := d.removeStage(dir); err != nil {
			return err
		}
	}
	at := path.Join(dir, StageName)
	if err := d.Mkdir(at, 0o755); err != nil {
		return err
	}
	return d.create(path.Join(at, ignoreName), ignoreText, 0o644)
}

// removeStage removes a directory's stage. It removes the .gitignore last, since that marks the
// stage as one of outboxgen's.
func (d Dir) removeStage(dir string) error {
	if ours, err := d.isStage(dir); err != nil || !ours {
		return err
	}
	at := path.Join(dir, StageName)
	entries, err := fs.ReadDir(d.FS(), at)
	if err != nil {
		return d.describe(at, err)
	}
	for _, e := range entries {
		if e.Name() != ignoreName {
			if err := d.RemoveAll(path.Join(at, e.Name())); err != nil {
				return d.describe(at, err)
			}
		}
	}
	for _, name := range []string{path.Join(at, ignoreName), at} {
		if err := d.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return d.describe(at, err)
		}
	}
	return nil
}

// create writes a file that is not there yet.
func (d Dir) create(name string, data []byte, mode fs.FileMode) error {
	f, err := d.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// prepare makes the stages and the directories that steps need, after it has written them into the
// journal.
func (d Dir) prepare(steps []Write) error {
	var j journal
	for _, w := range steps {
		dir := path.Dir(w.Path)
		if !w.removal && dir != "." && !slices.Contains(j.Stages, dir) {
			j.Stages = append(j.Stages, dir)
		}
	}
	for _, dir := range j.Stages {
		missing, err := d.missing(dir)
		if err != nil {
			return err
		}
		for _, name := range missing {
			if !slices.Contains(j.Made, name) {
				j.Made = append(j.Made, name)
			}
		}
	}
	if err := d.begin(j); err != nil {
		return err
	}
	for _, dir := range j.Made {
		if err := d.Mkdir(dir, 0o755); err != nil {
			return d.describe(dir, err)
		}
	}
	for _, w := range steps {
		if w.removal {
			continue
		}
		if err := d.makeStage(path.Dir(w.Path)); err != nil {
			return d.describe(w.Path, err)
		}
	}
	return nil
}

// begin makes the stage beside the lock, with the journal.
func (d Dir) begin(j journal) error {
	data, err := json.Marshal(j)
	if err == nil {
		err = d.makeStage(".")
	}
	if err == nil {
		err = d.create(path.Join(StageName, journalName), data, 0o644)
	}
	if err != nil {
		return d.describe(StageName, err)
	}
	return nil
}

// missing returns those of a directory and of the ones above it that do not exist, the outer first.
func (d Dir) missing(dir string) ([]string, error) {
	var names []string
	for ; dir != "."; dir = path.Dir(dir) {
		_, err := d.Stat(dir)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, d.describe(dir, err)
		}
		names = append(names, dir)
	}
	slices.Reverse(names)
	return names, nil
}

// staged returns the path at which the data of a step waits.
func staged(w Write, step int) string {
	return path.Join(path.Dir(w.Path), StageName, strconv.Itoa(step))
}
