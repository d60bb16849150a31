package output_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outboxgen/outboxgen/gen/output"
)

const ignore = "# " + output.Marker + "\n*\n"

// What a killed run left behind goes, whatever the moment; what is a user's own stays, however it
// is called.
func TestCleanRemovesWhatAKilledRunLeftAndNothingElse(t *testing.T) {
	t.Parallel()
	const stage = output.StageName
	for _, test := range []struct {
		name  string
		files map[string]string
		stays []string
		wrong bool
	}{
		{"nothing", map[string]string{"a.go": ours}, []string{"a.go"}, false},
		{"an ignore file that was cut short", map[string]string{stage + "/.gitignore": ignore[:7]},
			nil, false},
		{"an ignore file alone", map[string]string{stage + "/.gitignore": ""}, nil, false},
		{"no journal yet", map[string]string{
			stage + "/.gitignore": ignore, stage + "/scratch/x/db.go": "x",
		}, nil, false},
		{"a journal that was cut short", map[string]string{
			stage + "/.gitignore": ignore, stage + "/journal.json": `{"Sta`,
		}, nil, false},
		{"stages", map[string]string{
			stage + "/.gitignore": ignore, stage +
				"/journal.json": `{"Stages":["d/e","gone"],"Made":["d","d/e"]}`,
			stage + "/0": "x", "d/e/" + stage + "/.gitignore": ignore, "d/e/" + stage +
				"/1": "x", "d/mine": "x",
		}, []string{"d/mine"}, false},
		{"a user's directory", map[string]string{stage + "/mine": "x"}, []string{stage + "/mine"},
			true},
		{"a user's file", map[string]string{stage: "x"}, []string{stage}, true},
		{"a user's directory with an ignore file", map[string]string{
			stage + "/.gitignore": "*\n", stage + "/0": "x",
		},
			[]string{stage + "/.gitignore", stage + "/0"}, true},
		{"a user's directory below", map[string]string{
			stage + "/.gitignore": ignore, stage + "/journal.json": `{"Stages":["d","../x"]}`,
			"d/" + stage + "/mine": "x",
		}, []string{"d/" + stage + "/mine", stage + "/.gitignore", stage + "/journal.json"}, true},
		{"files of similar names", map[string]string{
			".a.go.ABCDEFGH.tmp": ours, "outboxgen.tmp/0": ours,
		},
			[]string{".a.go.ABCDEFGH.tmp", "outboxgen.tmp/0"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for name, data := range test.files {
				w.put(name, data)
			}
			if err := w.Clean(); (err != nil) != test.wrong {
				t.Errorf("got error %v, want one: %t", err, test.wrong)
			}
			want := map[string]string{}
			for _, name := range test.stays {
				want[name] = test.files[name]
			}
			w.want(want)
		})
	}
}

func TestARunThatIsInterruptedBeforeTheFirstMoveChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a.go", ours+"old")
	changes := w.compare(plan(file("a.go", ours+"new"), file("new/b.go", ours)))
	ctx, cancel := context.WithCancelCause(t.Context())
	because := errors.New("because")
	cancel(because)
	if err := changes.Apply(ctx, w.Dir); !errors.Is(err, because) {
		t.Errorf("got error %v, want the context's cause", err)
	}
	w.want(map[string]string{"a.go": ours + "old"})
	if _, err := os.Stat(filepath.Join(w.path, "new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a new directory is left: %v", err)
	}
}

// A power failure may leave a file without any content, which no comment can tell to be generated.
func TestAnEmptyFileIsOverwritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a.go", "")
	if err := w.compare(plan(file("a.go", ours))).Apply(t.Context(), w.Dir); err != nil {
		t.Fatal(err)
	}
	w.want(map[string]string{"a.go": ours, "x.lock": "lock"})
}

func TestAHugeFileIsNotRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("huge.go", "")
	if err := os.Truncate(filepath.Join(w.path, "huge.go"), 1<<40); err != nil {
		t.Skipf("no sparse files here: %v", err)
	}
	_, err := output.Compare(w.Dir, plan(file("huge.go", ours)))
	if err == nil || !strings.Contains(err.Error(), "huge.go: it has 1099511627776 bytes") {
		t.Errorf("got error %v, want one about its size", err)
	}
}
