// Package outbox publishes what a database transaction has committed: the events that generated
// code enqueues, and the relay that brings them to a broker.
//
// What is promised:
//
//   - Atomic. An event exists if and only if the transaction that enqueued it committed.
//   - At least once. A committed event is published until the broker has acknowledged it, or until
//     it is a dead letter that an operator can see and replay. A crash at any point loses nothing
//     and may publish again with the same event id.
//   - In order per key, for events with a key: those of one key are published in the order in which
//     their transactions took the aggregate's row lock, and one waits while its predecessor is
//     retried. If the relay process stalls past its lease, an event can appear twice; it is never
//     lost.
//
// Generated code implements [storage.Store] and calls [Encode]; an adapter implements [Publisher];
// a program runs a [Relay]. The package inbox has the consumer's side.
package outbox
