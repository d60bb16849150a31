// Package bench has the catalogue that the benchmarks run on, and what is generated from it. The
// benchmarks themselves are the command ./cmd/bench.
package bench

import _ "embed"

//go:generate go run github.com/outboxgen/outboxgen/cmd/outboxgen generate outbox.yaml
//go:generate go run github.com/outboxgen/outboxgen/cmd/outboxgen generate retained/outbox.yaml

// Migration creates the tables. The catalogue with retention has the same.
//
//go:embed migrations/00001_outboxgen.sql
var Migration string
