//go:build linux || darwin || freebsd

package tempdir

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}

func TestNewRemovesWhatDeadProcessesLeft(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	used, err := New("kind-")
	if err != nil {
		t.Fatal(err)
	}
	stale, err := New("kind-")
	if err != nil {
		t.Fatal(err)
	}
	other, err := New("other-")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*Dir{stale, other} { // as happens at the end of their process
		if err := d.lock.Close(); err != nil {
			t.Fatal(err)
		}
	}
	young := filepath.Join(os.TempDir(), "kind-being-made")
	if err := os.Mkdir(young, 0o700); err != nil {
		t.Fatal(err)
	}

	if _, err := New("kind-"); err != nil {
		t.Fatal(err)
	}
	if exists(stale.Join()) {
		t.Error("the folder of a dead process is still there")
	}
	for _, path := range []string{used.Join(), other.Join(), young} {
		if !exists(path) {
			t.Errorf("%s is gone", path)
		}
	}
}

func TestForgottenFolderIsStillInUse(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	path := func() string {
		d, err := New("kind-")
		if err != nil {
			t.Fatal(err)
		}
		return d.Join()
	}()
	for range 3 {
		runtime.GC()
	}
	if _, err := New("kind-"); err != nil {
		t.Fatal(err)
	}
	if !exists(path) {
		t.Error("the folder was taken for that of a dead process")
	}
}

func TestRemoveDeletesTheFolder(t *testing.T) {
	d, err := New("outboxgen-tempdir-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.Join("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Remove(); err != nil || exists(d.Join()) {
			t.Errorf("error %v, want none and no folder", err)
		}
	}
}
