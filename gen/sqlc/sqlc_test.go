package sqlc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// fake returns a program that acts as sqlc: version prints one, generate runs the script with $dir
// as the configuration's directory.
func fake(t *testing.T, version, script string) Command {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the fake is a shell script")
	}
	path := filepath.Join(t.TempDir(), "sqlc")
	text := "#!/bin/sh\nif [ \"$1\" = version ]; then echo '" + version +
		"'; exit; fi\ndir=$(dirname \"$3\")\n" + script + "\n"
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return Command{Args: []string{"/bin/sh", path}, Timeout: time.Minute}
}

func input() map[string][]byte {
	return map[string][]byte{"schema.sql": []byte("S"), "queries.sql": []byte("Q"),
		"sqlc.yaml": []byte("C")}
}

func TestCompileReturnsTheGoFilesAndCleansUp(t *testing.T) {
	t.Parallel()
	told := filepath.Join(t.TempDir(), "told")
	c := fake(t, "v1.31.1",
		`cat "$dir/schema.sql" "$dir/queries.sql" "$dir/sqlc.yaml" > "$dir/db.go"; echo m > "$dir/models.go"; echo "$dir" > '`+told+`'`)
	got, err := c.Compile(t.Context(), "", input())
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || string(got["db.go"]) != "SQC" || string(got["models.go"]) != "m\n" {
		t.Errorf("got %q", got)
	}
	dir, err := os.ReadFile(told)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(strings.TrimSpace(string(dir))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary directory is left: %v", err)
	}
}

func TestErrorsInTheSQLHaveTheirPlaces(t *testing.T) {
	t.Parallel()
	c := fake(t, "v1.31.1", `echo '# package outboxdb
queries.sql:188:1: relation "inboxx" does not exist
schema.sql:3:9: syntax error at or near "TABLEE": x' >&2; exit 1`)
	_, err := c.Compile(t.Context(), "", input())
	var compile *CompileError
	if !errors.As(err, &compile) {
		t.Fatalf("got error %v, want a *CompileError", err)
	}
	want := []Problem{
		{"queries.sql", 188, 1, `relation "inboxx" does not exist`},
		{"schema.sql", 3, 9, `syntax error at or near "TABLEE": x`},
	}
	if !slices.Equal(compile.Problems, want) {
		t.Errorf("got %+v, want %+v", compile.Problems, want)
	}
	if !strings.Contains(err.Error(), `queries.sql:188:1: relation`) {
		t.Errorf("got %q", err)
	}
}

func TestOtherFailuresShowWhatWasSaid(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, version, script, want string }{
		{"a failure", "v1.31.1", "echo no such option >&2; exit 3",
			"exit status 3\nno such option"},
		{"a silent failure", "v1.31.1", "exit 4", "exit status 4"},
		{"no Go files", "v1.31.1", "true", "made no Go file"},
		{"too old", "v1.28.0", "true",
			"older than v1.29.0: install v1.31.1 (go install github.com/sqlc-dev/sqlc"},
		{"far too old", "1.9.0", "true", "older than v1.29.0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := fake(t, test.version, test.script).Compile(t.Context(), "", input())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q in it", err, test.want)
			}
		})
	}
}

func TestAnUnknownVersionIsTakenAsItIs(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v1.29.0", "v2.0.0", "(devel)", "abcdef0"} {
		if _, err := fake(t, version, `echo x > "$dir/db.go"`).Compile(t.Context(), "",
			input()); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
}

func TestARunHasALimitAndStopsWithItsContext(t *testing.T) {
	t.Parallel()
	c := fake(t, "v1.31.1", "exec sleep 60")
	c.Timeout = 300 * time.Millisecond
	if _, err := c.Compile(t.Context(), "", input()); err == nil ||
		!strings.Contains(err.Error(), "took longer than 300ms") {
		t.Errorf("got error %v, want one about the limit", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Compile(ctx, "", input()); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want that of the context", err)
	}
}

func TestFindLooksUpwardsThenOnPath(t *testing.T) {
	lists, not := "module m\n\ntool "+pkg+"\n", "module m\n"
	onPath := t.TempDir()
	program := filepath.Join(onPath, "sqlc")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		files map[string]string
		dir   string // relative to the root of the files, where the tool is found; "PATH"
	}{
		{"its own module", map[string]string{"repo/svc/go.mod": lists, "repo/tools/go.mod": lists},
			"repo/svc"},
		{"tools beside it", map[string]string{"repo/svc/go.mod": not,
			"repo/svc/tools/go.mod": lists}, "repo/svc/tools"},
		{"tools above its module", map[string]string{"repo/svc/go.mod": not, "repo/go.mod": not,
			"repo/tools/go.mod": lists}, "repo/tools"},
		{"the module above", map[string]string{"repo/svc/go.mod": not, "repo/go.mod": lists},
			"repo"},
		{"not beyond the repository", map[string]string{"repo/svc/go.mod": not, "go.mod": lists},
			"PATH"},
		{"another tool", map[string]string{"repo/svc/go.mod": "module m\ntool x.test/sqlc\n"},
			"PATH"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("PATH", onPath)
			root := t.TempDir()
			for _, dir := range []string{"repo/.git", "repo/svc/deep/er"} {
				if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for name, data := range test.files {
				if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700),
					os.WriteFile(filepath.Join(root, name), []byte(data), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			got, err := Find("", filepath.Join(root, "repo/svc/deep/er"))
			if err != nil {
				t.Fatal(err)
			}
			want := Command{Args: []string{"go", "tool", "sqlc"},
				Dir: filepath.Join(root, test.dir)}
			if test.dir == "PATH" {
				want = Command{Args: []string{program}}
			}
			if got.Dir != want.Dir || !slices.Equal(got.Args, want.Args) {
				t.Errorf("got %q in %s, want %q in %s", got.Args, got.Dir, want.Args, want.Dir)
			}
		})
	}
}

func TestFindSaysHowToInstall(t *testing.T) {
	t.Setenv("PATH", "")
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Find("", root)
	if err == nil || !strings.Contains(err.Error(),
		"go install github.com/sqlc-dev/sqlc/cmd/sqlc@v1.31.1") {
		t.Errorf("got error %v, want the command that installs it", err)
	}
	if _, err := Find(filepath.Join(root, "nowhere"), root); err == nil ||
		!strings.Contains(err.Error(), "--sqlc") {
		t.Errorf("got error %v, want one about the flag", err)
	}
}
