// Package tempdir creates temporary directories that do not accumulate: those of killed processes
// are removed when another process asks for one of the same kind.
package tempdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// lockName is the file whose lock says that the process which created the directory is alive.
const lockName = "lock"

// Dir is a temporary directory of this process.
type Dir struct {
	path string
	lock *os.File
}

// held keeps the lock files reachable until they are closed, since the garbage collector would
// close them.
var held sync.Map

// New creates an empty directory whose name begins with prefix, in the system's directory for
// temporary files, and removes those of dead processes there. The directory has a file named lock,
// which the caller must leave alone.
func New(prefix string) (*Dir, error) {
	removeStale(os.TempDir(), prefix)
	path, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, err
	}
	d := &Dir{path: filepath.Clean(path)}
	if d.lock, err = lockNew(d.Join(lockName)); err != nil {
		return nil, errors.Join(fmt.Errorf("make a temporary folder: %w", err), os.RemoveAll(path))
	}
	held.Store(d, true)
	return d, nil
}

// Join returns the path of something in the directory, or the directory's own.
func (d *Dir) Join(elem ...string) string {
	return filepath.Join(append([]string{d.path}, elem...)...)
}

// Remove deletes the directory. Later calls do nothing.
func (d *Dir) Remove() error {
	if _, first := held.LoadAndDelete(d); !first {
		return nil
	}
	// The lock is closed first, since some systems do not delete an open file.
	return errors.Join(d.lock.Close(), os.RemoveAll(d.path))
}

func removeStale(parent, prefix string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, prefix+"*")) // the only error is a bad pattern
	for _, dir := range dirs {
		lock, err := lockExisting(filepath.Join(dir, lockName))
		if err != nil {
			continue // it is in use, being created, or another program's
		}
		_ = os.RemoveAll(dir) // the next process tries again
		_ = lock.Close()
	}
}
