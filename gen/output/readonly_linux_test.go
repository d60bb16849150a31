package output_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// nobody is a user without rights of its own.
const nobody = 65534

func TestAReadOnlyDirectoryIsNamedAndLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("locked/a.go", ours+"old")
	changes := w.compare(plan(file("b.go", ours), file("locked/a.go", ours+"new")))
	if err := errors.Join(os.Chmod(filepath.Join(w.path, "locked"), 0o555),
		os.Chmod(w.path, 0o777)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(w.path, "locked"), 0o755) })

	result := make(chan error)
	go func() {
		// Root may write anywhere: the thread gives its rights to files up, and ends with the
		// goroutine.
		if os.Geteuid() == 0 {
			runtime.LockOSThread()
			_ = syscall.Setfsuid(nobody)
		}
		result <- changes.Apply(t.Context(), w.Dir)
	}()
	err := <-result
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "locked/a.go") {
		t.Errorf("got error %v, want one of permission that names the file", err)
	}
	w.want(map[string]string{"locked/a.go": ours + "old"})
}
