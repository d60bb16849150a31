// Package versions tests how an event moves to its next version while two releases of a service run
// at once. docs/catalogue.md says which ways are right.
package versions

//go:generate go run github.com/outboxgen/outboxgen/cmd/outboxgen generate old/outbox.yaml
//go:generate go run github.com/outboxgen/outboxgen/cmd/outboxgen generate new/outbox.yaml
