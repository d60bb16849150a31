package sqlc

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// checkVersion refuses a sqlc that is too old for the SQL. It accepts a build without a version.
func (c Command) checkVersion(ctx context.Context) error {
	out, err := c.run(ctx, "version")
	if err != nil {
		return err
	}
	version, ok := parseVersion(out)
	oldest, _ := parseVersion(OldestVersion)
	if ok && slices.Compare(version, oldest) < 0 {
		return fmt.Errorf("sqlc: %q is version %d.%d.%d, which is older than %s: install %s (%s)",
			c, version[0], version[1], version[2], OldestVersion, TestedVersion, installCommand)
	}
	return nil
}

var versionPattern = regexp.MustCompile(`^v?(\d+)\.(\d+)\.(\d+)`)

func parseVersion(s string) ([]int, bool) {
	m := versionPattern.FindStringSubmatch(s)
	if m == nil {
		return nil, false
	}
	version := make([]int, 3)
	for i := range version {
		n, err := strconv.Atoi(m[i+1])
		if err != nil {
			return nil, false
		}
		version[i] = n
	}
	return version, true
}
