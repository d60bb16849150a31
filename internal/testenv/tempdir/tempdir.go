// Package tempdir makes temporary folders that do not pile up: what a killed process leaves, the
// next one to ask for a folder of the same kind removes.
package tempdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// lockName is the file whose lock says that the folder's maker lives.
const lockName = "lock"

// Dir is a temporary folder of this process.
type Dir struct {
	path string
	lock *os.File
}

// held keeps the locks reachable until they are released: the garbage collector would close them.
var held sync.Map

// New makes an empty folder whose name begins with prefix, below the system's folder for temporary
// files, and removes those of dead processes there. A file named lock is in it, and the caller
// leaves that alone.
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

// Join returns the path of something in the folder, or the folder's own.
func (d *Dir) Join(elem ...string) string {
	return filepath.Join(append([]string{d.path}, elem...)...)
}

// Remove deletes the folder. Later calls do nothing.
func (d *Dir) Remove() error {
	if _, first := held.LoadAndDelete(d); !first {
		return nil
	}
	// Closed first, for the systems that do not delete an open file.
	return errors.Join(d.lock.Close(), os.RemoveAll(d.path))
}

func removeStale(parent, prefix string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, prefix+"*")) // the only error is a bad pattern
	for _, dir := range dirs {
		lock, err := lockExisting(filepath.Join(dir, lockName))
		if err != nil {
			continue // in use, being made, or somebody else's
		}
		_ = os.RemoveAll(dir) // the next one tries again
		_ = lock.Close()
	}
}
