package output_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/outboxgen/outboxgen/gen/output"
)

const ours = "// " + output.Marker + "\n"

// world is a directory to generate into.
type world struct {
	t *testing.T
	output.Dir
	path string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	path := t.TempDir()
	root, err := os.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return &world{t: t, Dir: output.Dir{Root: root}, path: path}
}

func (w *world) put(name, data string) {
	w.t.Helper()
	path := filepath.Join(w.path, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
		os.WriteFile(path, []byte(data), 0o644)); err != nil {
		w.t.Fatal(err)
	}
}

// files returns every file's content by its path.
func (w *world) files() map[string]string {
	w.t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(w.path, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(w.path, path)
		data, err := os.ReadFile(path)
		files[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return files
}

func (w *world) compare(p output.Plan) *output.Changes {
	w.t.Helper()
	changes, err := output.Compare(w.Dir, p)
	if err != nil {
		w.t.Fatal(err)
	}
	return changes
}

func (w *world) want(want map[string]string) {
	w.t.Helper()
	got := w.files()
	for name, data := range want {
		if have, ok := got[name]; !ok || have != data {
			w.t.Errorf("%s: got %q (there: %t), want %q", name, have, ok, data)
		}
		delete(got, name)
	}
	for name := range got {
		w.t.Errorf("%s: there, and should not be", name)
	}
}

func plan(files ...output.File) output.Plan {
	return output.Plan{Files: files, Lock: output.File{Path: "x.lock", Data: []byte("lock")}}
}

func file(path, data string) output.File {
	return output.File{Path: path, Data: []byte(data), Marker: output.Marker}
}

func TestApplyWritesWhatDiffersAndRemovesWhatIsStale(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a/same.go", ours+"same")
	w.put("a/differs.go", ours+"old")
	w.put("gone/below/stale.go", ours)
	w.put("a/sqlc.go", "// "+output.MarkerSQLC+"\n")
	p := plan(file("a/same.go", ours+"same"), file("a/differs.go", ours+"new"),
		file("b/c/new.go", ours))
	p.Stale = []string{"gone/below/stale.go", "a/sqlc.go", "a/never.go"}

	changes := w.compare(p)
	if len(changes.All()) != 3 ||
		!slices.Equal(changes.Remove(), []string{"gone/below/stale.go", "a/sqlc.go"}) {
		t.Fatalf("got %+v to write and %q to remove", changes.All(), changes.Remove())
	}
	if err := changes.Apply(w.t.Context(), w.Dir); err != nil {
		t.Fatal(err)
	}
	w.want(map[string]string{
		"a/same.go": ours + "same", "a/differs.go": ours + "new", "b/c/new.go": ours,
		"x.lock": "lock",
	})
	if _, err := os.Stat(filepath.Join(w.path, "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directories that became empty are there: %v", err)
	}
	if again := w.compare(p); len(again.All()) != 0 || len(again.Remove()) != 0 {
		t.Errorf("a second comparison finds %+v and %q", again.All(), again.Remove())
	}
}

func TestAHandWrittenFileIsNeitherOverwrittenNorRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("mine.go", "package mine\n")
	w.put("late.go", strings.Repeat("\n", 30)+ours)
	w.put("stale.go", "// It says: "+output.Marker+"\n")

	_, err := output.Compare(w.Dir, plan(file("mine.go", ours), file("late.go", ours)))
	if err == nil || !strings.Contains(err.Error(), "mine.go: not overwritten") ||
		!strings.Contains(err.Error(), "late.go: not overwritten") {
		t.Errorf("got error %v, want one that names both files", err)
	}
	p := plan()
	p.Stale = []string{"stale.go"}
	if changes := w.compare(p); len(changes.Remove()) != 0 {
		t.Errorf("would remove %q", changes.Remove())
	}
}

func TestWhatIsInTheWayIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Name = "svc"
	outside := t.TempDir()
	w.put("dir.go/x", "")
	w.put("a", "a file")
	w.put("target.go", ours)
	for link, target := range map[string]string{"link.go": "target.go", "out": outside,
		"dangling.go": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(w.path, link)); err != nil {
			if runtime.GOOS != "windows" {
				t.Fatal(err)
			}
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	_, err := output.Compare(w.Dir, plan(
		file("dir.go", ours), file("a/b/c.go", ours), file("link.go", ours), file("out/x.go",
			ours), file("dangling.go", ours)))
	for _, want := range []string{
		"svc/dir.go: a directory is in the way", "svc/a: a file stands where a directory is needed",
		"svc/link.go: a symbolic link is in the way", "svc/out/x.go: path escapes from parent",
		"svc/dangling.go: a symbolic link is in the way",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q in it", err, want)
		}
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 0 {
		t.Errorf("something was written outside: %v", entries)
	}
}

func TestPathsThatLeaveTheDirectoryAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, path := range []string{"../x", "/etc/x", "a/../../x", ".", "", `a\b`, "./a", "a//b"} {
		if _, err := output.Compare(w.Dir, plan(file(path, ours))); err == nil {
			t.Errorf("%q is accepted as a file", path)
		}
		p := plan()
		p.Stale = []string{path}
		if _, err := output.Compare(w.Dir, p); err == nil {
			t.Errorf("%q is accepted as a stale file", path)
		}
	}
	if _, err := output.Compare(w.Dir, plan(file("a", ours), file("a", ours))); err == nil {
		t.Error("one path twice is accepted")
	}
	p := plan(file("a", ours))
	p.Stale = []string{"a"}
	if _, err := output.Compare(w.Dir, p); err == nil {
		t.Error("a path to be written and removed is accepted")
	}
}

func TestLineEndingsAreNoDifference(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a.go", strings.ReplaceAll(ours+"x\n", "\n", "\r\n"))
	w.put("x.lock", "lock")
	if changes := w.compare(plan(file("a.go", ours+"x\n"))); len(changes.All()) != 0 {
		t.Errorf("would write %+v", changes.All())
	}
	if output.Hash([]byte("a\r\nb\n")) != output.Hash([]byte("a\nb\n")) {
		t.Error("hashes differ")
	}
}

func TestAFailureWhileStagingChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a.go", ours+"old")
	w.put("stale.go", ours)
	p := plan(file("a.go", ours+"new"), file("new/deep/b.go", ours), file("z/c.go", ours))
	p.Stale = []string{"stale.go"}
	changes := w.compare(p)
	w.put("z", "a file got in the way")

	if err := changes.Apply(w.t.Context(), w.Dir); err == nil ||
		!strings.Contains(err.Error(), "z") {
		t.Errorf("got error %v, want one about z", err)
	}
	w.want(map[string]string{"a.go": ours + "old", "stale.go": ours, "z": "a file got in the way"})
	if _, err := os.Stat(filepath.Join(w.path, "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("new directories are left: %v", err)
	}
}

func TestAFailureWhileMovingTakesBackWhatWasMoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a.go", ours+"old a")
	w.put("c.go", ours+"old c")
	w.put("stale.go", ours)
	w.put("x.lock", "old lock")
	p := plan(file("a.go", ours+"new a"), file("aa/new.go", ours), file("b.go", ours+"new b"),
		file("c.go", ours+"new c"))
	p.Stale = []string{"stale.go"}
	changes := w.compare(p)
	w.put("b.go/x", "a directory got in the way")

	if err := changes.Apply(w.t.Context(), w.Dir); err == nil ||
		!strings.HasPrefix(err.Error(), "b.go: ") {
		t.Errorf("got error %v, want one about b.go", err)
	}
	w.want(map[string]string{
		"a.go": ours + "old a", "b.go/x": "a directory got in the way", "c.go": ours +
			"old c", "stale.go": ours, "x.lock": "old lock",
	})
	if err := os.RemoveAll(filepath.Join(w.path, "b.go")); err != nil {
		t.Fatal(err)
	}
	if err := w.compare(p).Apply(w.t.Context(), w.Dir); err != nil {
		t.Fatal(err)
	}
	w.want(map[string]string{
		"a.go": ours + "new a", "aa/new.go": ours, "b.go": ours + "new b", "c.go": ours +
			"new c", "x.lock": "lock",
	})
}

func TestModesAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a.go", ours+"old")
	if err := os.Chmod(filepath.Join(w.path, "a.go"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.compare(plan(file("a.go", ours+"new"), file("b.go", ours))).Apply(w.t.Context(),
		w.Dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{"a.go": 0o600, "b.go": 0o644} {
		info, err := os.Stat(filepath.Join(w.path, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want && got != want&^0o022 && got != want&^0o077 {
			t.Errorf("%s: got mode %v, want %v", name, got, want)
		}
	}
}

func TestWriteLineIsTheFirstThatDiffers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		old, data string
		want      int
	}{
		{"a\nb\nc\n", "a\nB\nc\n", 2}, {"a", "b", 1}, {"a\n", "a\nb\n", 2}, {"a\r\nb", "a\nc", 2},
		{"", "a", 1},
	} {
		if got := (output.Write{Old: []byte(test.old),
			Data: []byte(test.data)}).Line(); got != test.want {
			t.Errorf("%q → %q: got %d, want %d", test.old, test.data, got, test.want)
		}
	}
	if got := (output.Write{Data: []byte("a")}).Line(); got != 0 {
		t.Errorf("a missing file: got %d, want 0", got)
	}
}
