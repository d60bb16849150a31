package skew

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Unchanged fails the test if a file of dir is missing, or differs from its sum in SHA256SUMS.
func Unchanged(t *testing.T, dir string) {
	t.Helper()
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for lines := bufio.NewScanner(bytes.NewReader(sums)); lines.Scan(); n++ {
		want, name, _ := strings.Cut(lines.Text(), "  ")
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			t.Error(err)
			continue
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != want {
			t.Errorf("%s was changed: it is frozen, and what an earlier outboxgen generated", name)
		}
	}
	if n == 0 {
		t.Error("SHA256SUMS names no file")
	}
}
