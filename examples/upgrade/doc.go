// Package upgrade plays how the tables move to their next version while relays, producers and
// consumers of two releases are at work: docs/operating.md says in which order. What is generated
// here is the next release; release1 is the one before it, frozen.
package upgrade

//go:generate go run github.com/outboxgen/outboxgen/cmd/outboxgen generate
