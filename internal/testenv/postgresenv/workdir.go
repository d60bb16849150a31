package postgresenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

const (
	workDirPrefix = "outboxgen-pg-"
	logTailBytes  = 2000
)

// A workDir holds everything of one instance, below the system's folder for temporary files. Its lock is held for as long
// as its owner lives, so that what a killed process left is told from what is in use.
type workDir struct {
	path     string
	lock     *os.File
	watchdog *watchdog // nil until the server runs
}

func newWorkDir(owner *account) (*workDir, error) {
	path, err := os.MkdirTemp("", workDirPrefix)
	if err != nil {
		return nil, err
	}
	d := &workDir{path: path}
	if d.lock, err = lockFile(d.join("lock")); err == nil {
		err = owner.own(path)
	}
	if err == nil {
		err = os.Mkdir(d.data(), 0o700)
	}
	if err == nil {
		err = owner.own(d.data())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare %s: %w", path, err), d.remove())
	}
	return d, nil
}

func (d *workDir) join(elem ...string) string {
	return filepath.Join(append([]string{d.path}, elem...)...)
}
func (d *workDir) data() string { return d.join("data") }

// logTail is the end of what postgres wrote.
func (d *workDir) logTail() string {
	log, err := os.ReadFile(d.join("log"))
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-logTailBytes):])
}

// watch sees to it that the server and the folder do not outlive this process.
func (d *workDir) watch(pid int) (err error) {
	if err = d.watchdog.release(); err == nil {
		d.watchdog, err = startWatchdog(serverWatchdog, strconv.Itoa(pid), d.path)
	}
	return err
}

// remove deletes the folder and ends the watchdog.
func (d *workDir) remove() error {
	err := os.RemoveAll(d.path)
	if d.lock != nil {
		err = errors.Join(err, d.lock.Close())
	}
	err = errors.Join(err, d.watchdog.release())
	d.watchdog = nil
	return err
}

// removeStale deletes folders whose owner is dead, and its watchdog with it.
func removeStale(temp string) {
	dirs, _ := filepath.Glob(filepath.Join(temp, workDirPrefix+"*"))
	for _, dir := range dirs {
		lock, err := lockExisting(filepath.Join(dir, "lock"))
		if err != nil {
			continue // in use, being made, or somebody else's
		}
		_ = os.RemoveAll(dir) // the next start tries again
		_ = lock.Close()
	}
}
