package sqlc

import (
	"os"
	"path/filepath"
)

// Seen remembers on this machine what sqlc has made of which SQL, as a hash of both. Unlike the
// sums in a lock, it does not come with a repository, so that what it holds can be trusted without
// running sqlc again. The zero value remembers nothing.
type Seen struct{ Dir string }

// UserSeen returns the memory in the user's cache directory, or the zero value if there is none.
func UserSeen() Seen {
	cache, err := os.UserCacheDir()
	if err != nil {
		return Seen{}
	}
	return Seen{Dir: filepath.Join(cache, "outboxgen", "sqlc")}
}

// Has reports whether sqlc has been seen to make this.
func (s Seen) Has(hash string) bool {
	if s.Dir == "" {
		return false
	}
	_, err := os.Lstat(filepath.Join(s.Dir, hash))
	return err == nil
}

// Add remembers a hash. If that fails, sqlc runs more often than necessary.
func (s Seen) Add(hash string) {
	if s.Dir != "" && os.MkdirAll(s.Dir, 0o700) == nil {
		_ = os.WriteFile(filepath.Join(s.Dir, hash), nil, 0o600)
	}
}
