// Package upgrade tests how the tables move to their next version while relays, producers and
// consumers of two releases are at work; docs/operating.md has the order of the steps. The code
// generated here is the next release; release1 is the previous one, frozen.
package upgrade

//go:generate go run github.com/outboxgen/outboxgen/cmd/outboxgen generate
