package sqlc

import (
	"os"
	"path/filepath"
)

// Seen remembers on this machine what sqlc has made of which SQL, each by a hash of both. A
// repository cannot bring it along, unlike the sums in a lock: so what is in it need not be
// compiled again to be believed. The zero value remembers nothing.
type Seen struct{ Dir string }

// UserSeen is in the user's cache directory, if there is one.
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

// Add remembers. A machine on which it cannot runs sqlc more often than it would have to.
func (s Seen) Add(hash string) {
	if s.Dir != "" && os.MkdirAll(s.Dir, 0o700) == nil {
		_ = os.WriteFile(filepath.Join(s.Dir, hash), nil, 0o600)
	}
}
