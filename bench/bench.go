// Package bench has the catalogue that the benchmarks run on, and the code generated from it. The
// benchmarks themselves are the command ./cmd/bench.
package bench

import (
	"embed"
	"io/fs"
	"strings"
)

//go:generate go run github.com/outboxgen/outboxgen/cmd/outboxgen generate outbox.yaml
//go:generate go run github.com/outboxgen/outboxgen/cmd/outboxgen generate retained/outbox.yaml

//go:embed retained/migrations/*.sql
var retained embed.FS

// Migration creates the tables of both catalogues: the one with retention has all tables of the
// other.
var Migration = func() string {
	var all strings.Builder
	names, _ := fs.Glob(retained, "retained/migrations/*.sql") // in the order of their numbers
	for _, name := range names {
		text, err := retained.ReadFile(name)
		if err != nil {
			panic(err)
		}
		all.Write(text)
	}
	return all.String()
}()
