package outbox

import "github.com/outboxgen/outboxgen/runtime/outbox/storage"

// ID identifies an event wherever it goes. It is assigned once, at enqueue, and never again:
// publishing twice carries the same ID. Versions of one fact that are enqueued together share it.
type ID = storage.ID

// Message is the envelope of an event: what a Publisher sends, and a subscriber receives.
type Message = storage.Message

// ErrUnusable is wrapped by errors that retrying cannot mend: for instance, the tables belong to
// another service, or the server lacks a feature that the store needs. Run returns such an error.
var ErrUnusable = storage.ErrUnusable

// ErrMigrationMissing is wrapped by errors that say which migration has to be applied before the
// code can work on the database. They wrap ErrUnusable, too.
var ErrMigrationMissing = storage.ErrMigrationMissing
