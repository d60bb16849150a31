//go:build linux || darwin || freebsd

package postgresenv

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// fakePostgres creates an installation whose programs only print their version, and fail otherwise.
func fakePostgres(t *testing.T, version string) installation {
	t.Helper()
	bin := t.TempDir()
	openUp(t, bin)
	for _, program := range []string{"initdb", "postgres"} {
		script := "#!/bin/sh\necho '" + program + " (PostgreSQL) " + version +
			"'\n[ \"$*\" = --version ]\n"
		if err := os.WriteFile(filepath.Join(bin, program), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return installation{bin: bin}
}

func TestEveryInstallationThatRefusesSaysWhy(t *testing.T) {
	t.Parallel()
	old, other, broken := fakePostgres(t, "13.9"), fakePostgres(t, "15.2"), fakePostgres(t, "16.1")
	missing := installation{bin: filepath.Join(t.TempDir(), "none")}
	for version, want := range map[string][]string{
		"": {
			old.bin + ` is version "13", older than 14`, missing.bin + "/initdb does not run",
			broken.bin + "/initdb: exit status 1",
		},
		"16": {
			other.bin + " is version 15, and " + envVersion + " asks for 16",
			broken.bin + "/initdb: exit status 1",
		},
	} {
		_, err := startBinaries(t.Context(), Config{}, []installation{old, missing, other, broken},
			version, "here")
		if err == nil {
			t.Fatal("a server out of nothing")
		}
		for _, text := range want {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("version %q: error lacks %q:\n%v", version, text, err)
			}
		}
	}
}

func TestNoInstallationIsARefusal(t *testing.T) {
	t.Parallel()
	if _, err := startBinaries(t.Context(), Config{}, nil, "", "here"); err == nil ||
		!strings.Contains(err.Error(), "no initdb and postgres here") {
		t.Errorf("error %v, want one that says that there is none", err)
	}
}

func newTestDir(t *testing.T) (*workDir, *account) {
	t.Helper()
	owner, err := serverAccount()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := newWorkDir(owner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dir.remove(); err != nil {
			t.Error(err)
		}
	})
	return dir, owner
}

func TestServerThatEndsAtOnceShowsItsLog(t *testing.T) {
	t.Parallel()
	dir, owner := newTestDir(t)
	_, err := startInstance(t.Context(), Config{}, fakePostgres(t, "17.0").bin, dir, owner)
	if err == nil || !strings.Contains(err.Error(), "ended at once:\npostgres (PostgreSQL) 17.0") {
		t.Errorf("error %v, want the log of the server", err)
	}
}

func TestAnotherServerOnThePortIsNotTakenForTheOwn(t *testing.T) {
	t.Parallel()
	other := startPrivate(t, Config{})
	port, err := strconv.Atoi(other.admin.Port())
	if err != nil {
		t.Fatal(err)
	}
	bin := privateInstallations(t)[0].bin
	dir, owner := newTestDir(t)
	if err := initDatabase(t.Context(), bin, dir, owner); err != nil {
		t.Fatal(err)
	}
	inst, err := launch(Config{}, bin, dir, owner, port)
	if err != nil {
		t.Fatal(err)
	}
	defer inst.kill()
	if _, err := inst.awaitReady(t.Context(), other.admin, "test"); err == nil ||
		!strings.Contains(err.Error(), "ended at once") {
		t.Errorf("error %v, want one that says that the own server ended", err)
	}
}

func TestFetchedServerIsCopiedWhereItsUserMayNotGo(t *testing.T) {
	t.Parallel()
	fetched := testdepsInstallations()
	if os.Geteuid() != 0 || len(fetched) == 0 {
		t.Skip("needs root and a server in .testdeps")
	}
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.CopyFS(filepath.Join(closed, "pg"), os.DirFS(fetched[0].prefix)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	prefix := filepath.Join(closed, "pg")

	inst := installation{bin: filepath.Join(prefix, "bin")}
	if _, err := startBinaries(t.Context(), Config{}, []installation{inst}, "",
		"here"); err == nil || !strings.Contains(err.Error(), "does not run as user") {
		t.Errorf("error %v, want one that names the user", err)
	}
	inst.prefix = prefix
	server, err := startBinaries(t.Context(), Config{}, []installation{inst}, "", "here")
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
}
