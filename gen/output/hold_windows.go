package output

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Flags and errors of Windows that package syscall does not name.
const (
	deleteOnClose    = 0x04000000
	sharingViolation = syscall.Errno(32)
	deletePending    = syscall.Errno(303)
)

// tryHold opens a file for itself alone. A directory cannot be locked here, so the file stands
// among the temporary ones, named after the directory; Windows removes it when the process ends.
func (d Dir) tryHold(bool) (release func(), err error) {
	sum := sha256.Sum256([]byte(strings.ToLower(d.Root.Name())))
	name := filepath.Join(os.TempDir(), "outboxgen-"+hex.EncodeToString(sum[:8])+".hold")
	p, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(p, syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_ALWAYS,
		deleteOnClose, 0)
	switch {
	case err == nil:
		return func() { _ = syscall.CloseHandle(h) }, nil
	case errors.Is(err, sharingViolation), errors.Is(err, deletePending),
		errors.Is(err, syscall.ERROR_ACCESS_DENIED):
		return nil, errHeld
	default:
		return func() {}, nil
	}
}
