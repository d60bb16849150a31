//go:build linux || darwin || freebsd

package tempdir

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockNew creates a file and locks it until it is closed, or the process ends.
func lockNew(path string) (*os.File, error) { return lock(path, os.O_CREATE|os.O_EXCL|os.O_RDWR) }

// lockExisting fails if there is no such file, or if the process that created it is alive.
func lockExisting(path string) (*os.File, error) { return lock(path, os.O_RDWR) }

func lock(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f, nil
}
