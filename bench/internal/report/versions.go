package report

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// compared are prefixes of the modules whose versions matter: the driver, the broker and its
// client, and the relay's peers.
var compared = []string{
	"github.com/jackc/pgx/", "github.com/nats-io/nats", "github.com/riverqueue/",
	"github.com/ThreeDotsLabs/",
}

// versions returns what a program was built from, if that is known, and its server's version.
func versions(build *debug.BuildInfo, postgres string) []Fact {
	facts := []Fact{{"Go", runtime.Version()}, {"PostgreSQL", postgres}}
	if build == nil {
		return facts
	}
	if commit := revision(build); commit != "" {
		facts = slices.Insert(facts, 0, Fact{"outboxgen", commit})
	}
	for _, module := range build.Deps {
		if slices.ContainsFunc(compared, func(prefix string) bool {
			return strings.HasPrefix(module.Path, prefix)
		}) {
			facts = append(facts, Fact{module.Path, moduleVersion(module)})
		}
	}
	return facts
}

func moduleVersion(module *debug.Module) string {
	if module.Replace != nil {
		return module.Version + ", replaced by " + cmp.Or(module.Replace.Version, "a copy")
	}
	return module.Version
}

// revision returns the commit that the program was built from, or "" if the build does not know.
func revision(build *debug.BuildInfo) string {
	settings := make(map[string]string, len(build.Settings))
	for _, s := range build.Settings {
		settings[s.Key] = s.Value
	}
	commit := settings["vcs.revision"]
	if commit == "" {
		return ""
	}
	if settings["vcs.modified"] == "true" {
		commit += ", with changes"
	}
	return "revision " + commit
}
