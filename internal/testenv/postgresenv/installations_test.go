package postgresenv

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestNewestInstallationComesFirst(t *testing.T) {
	t.Parallel()
	got := newestFirst([]string{
		"/usr/lib/postgresql/9/bin", "/usr/lib/postgresql/17/bin", "/usr/lib/postgresql/14/bin",
	})
	want := []string{
		"/usr/lib/postgresql/17/bin", "/usr/lib/postgresql/14/bin", "/usr/lib/postgresql/9/bin",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := newestFirst([]string{
		"/x/.testdeps/pg14", "/x/.testdeps/pg18",
	})[0]; got != "/x/.testdeps/pg18" {
		t.Errorf("first is %s, want pg18", got)
	}
}

func TestRepositoryRootIsTheRootModules(t *testing.T) {
	t.Parallel()
	root, err := repositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "internal", "testenv", "go.mod")); err != nil {
		t.Errorf("%s is not the top of the repository: %v", root, err)
	}
}
