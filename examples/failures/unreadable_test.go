package failures_test

import (
	"fmt"
	"testing"

	"github.com/outboxgen/outboxgen/examples/conformance/plain/events"
	"github.com/outboxgen/outboxgen/runtime/outbox"
	"github.com/outboxgen/outboxgen/runtime/outboxtest"
)

// TestARowThatIsNoEventBecomesADeadLetter damages rows, as another program or an operator might.
// The constraints that could have prevented that are dropped first.
func TestARowThatIsNoEventBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]string{
		"headers with a number": `headers = '{"tenant": 7}'`,
		"headers in a list":     `headers = '["tenant"]'`,
		"headers with null":     `headers = '{"tenant": {"id": null}}'`,
		"headers as a text":     `headers = '"tenant"'`,
		"version 0":             `version = 0`,
		"a negative version":    `version = -1`,
		"no type":               `type = ''`,
		"a type with a version": `type = 'thing.happened@1'`,
		"no topic":              `topic = ''`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.exec(`DO $$
				DECLARE c record;
				BEGIN
					FOR c IN SELECT conrelid::regclass AS at, conname FROM pg_constraint
						WHERE contype = 'c'
						AND conrelid IN ('outbox'::regclass, 'outbox_dead'::regclass) LOOP
						EXECUTE format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS %I',
							c.at, c.conname);
					END LOOP;
				END $$`)
			ids := w.enqueue(thing("a", 1), thing("a", 2), thing("a", 3),
				events.StrayHappenedV1{N: 1}, thing("b", 1), thing("c", 1))
			w.exec(`UPDATE outbox SET `+spoil+` WHERE id = $1 OR id = $2`, ids[0].String(),
				ids[3].String())
			recording := &outboxtest.RecordingPublisher{}
			_, stop := w.run(w.store, recording, quick())
			messages := w.published(recording, 4)
			w.eventually("all is settled", func() bool { return w.pending() == 0 })
			stop()
			w.once(recording.Messages(), 4)
			w.orderedFirst(messages)
			letters := w.deadLetters(10)
			dead := map[outbox.ID]bool{}
			for _, letter := range letters {
				dead[letter.ID] = true
				if letter.Error == "" {
					t.Error("a dead letter does not say why")
				}
			}
			w.equal("the dead", fmt.Sprint(len(dead), dead[ids[0]], dead[ids[3]]), "2 true true")
		})
	}
}
