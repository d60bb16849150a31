//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package output

import (
	"errors"
	"syscall"
)

// tryHold locks the directory itself, so that there is no file to be left or committed.
func (d Dir) tryHold(exclusive bool) (release func(), err error) {
	f, err := d.Open(".")
	if err != nil {
		return nil, d.describe(".", err)
	}
	how := syscall.LOCK_SH
	if exclusive {
		how = syscall.LOCK_EX
	}
	for {
		err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		_ = f.Close()
		return nil, errHeld
	}
	return func() { _ = f.Close() }, nil // any other error: this file system has no locks
}
