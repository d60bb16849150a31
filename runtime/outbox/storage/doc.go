// Package storage is the contract between the runtime and a database: what the relay asks of an
// outbox, what operators ask of it, and the types of both. Generated code implements Store and
// Operator with sqlc's queries. Applications pass such a store to outbox.NewRelay and seldom need
// anything else of this package. The suite conformance.TestStore checks what each method promises.
//
// The contract can grow: every method takes a struct of parameters and returns a struct of results,
// to which fields may be added, and an implementation embeds BaseStore, which has a default for
// every method that is added later. Signatures never change, so that committed code compiles
// against every later runtime of the same major version.
//
// All timestamps are the database's; callers pass durations.
package storage
