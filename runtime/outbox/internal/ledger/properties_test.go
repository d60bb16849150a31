package ledger

import (
	"flag"
	"testing"

	"github.com/outboxgen/outboxgen/runtime/outbox/storage/xid"
	"pgregory.net/rapid"
)

// TestLedgerModel drives a ledger against a model of a database whose transactions commit in any
// order, with every interleaving of reading, committing, publishing and settling that a relay can
// meet. Whatever happens, each committed event is published, only a crash publishes one twice, and
// those of a key come in the order in which their transactions held its lock.
func TestLedgerModel(t *testing.T) {
	setFlag(t, "rapid.checks", "100", "5000")
	setFlag(t, "rapid.steps", "30", "120")
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(m.actions())
		m.finishEverything(t)
	})
}

// TestLedgerWithoutLocks is the same with keys that no transaction locks, so that their events
// commit in any order, and with replays. There is no order to keep then; nothing may be lost or
// published twice all the same.
func TestLedgerWithoutLocks(t *testing.T) {
	setFlag(t, "rapid.checks", "100", "5000")
	setFlag(t, "rapid.steps", "30", "120")
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		m.unlocked = true
		actions := m.actions()
		actions["replay"] = m.replay
		t.Repeat(actions)
		m.finishEverything(t)
	})
}

// actions are what a relay, its database and its operators do, in any order.
func (m *model) actions() map[string]func(*rapid.T) {
	step := func(*rapid.T) { m.step() }
	return map[string]func(*rapid.T){
		"begin": m.begin, "enqueue": m.enqueue,
		"commit":   func(t *rapid.T) { m.end(t, true) },
		"rollback": func(t *rapid.T) { m.end(t, false) },
		"reader":   step, "reader 2": step, "reader 3": step,
		"take": m.take, "finish": m.finish, "settle": m.settle, "record": m.record,
		"time": m.passTime, "minute": m.passMinute,
		"make due": m.makeDue, "remove": m.operatorRemoves, "reset": m.operatorResets,
		"giveBack": m.giveBack, "crash": m.crash, "outage": m.outage,
	}
}

// TestLedgerLateCommits is the same where nothing fails and transactions are all that is slow: it
// finds mistakes of the watermark faster.
func TestLedgerLateCommits(t *testing.T) {
	setFlag(t, "rapid.checks", "100", "10000")
	setFlag(t, "rapid.steps", "30", "60")
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		cycle := func(t *rapid.T) {
			for range rapid.IntRange(1, 12).Draw(t, "steps") {
				m.step()
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"begin":    m.begin,
			"begin 2":  m.begin,
			"enqueue":  m.enqueue,
			"commit":   func(t *rapid.T) { m.end(t, true) },
			"rollback": func(t *rapid.T) { m.end(t, false) },
			"cycle":    cycle,
			"cycle 2":  cycle,
			"work":     m.work,
			"time":     func(*rapid.T) { m.now = m.now.Add(xid.MaxMarkWait) },
		})
		m.finishEverything(t)
	})
}

// work publishes and settles all that can be.
func (m *model) work(t *rapid.T) {
	m.publishAll(t)
	m.settle(t)
	m.record(t)
}

func (m *model) publishAll(t *rapid.T) {
	m.with = append(m.with, m.ledger.begun(m.now)...)
	for _, a := range m.with {
		m.report(t, a, make([]Outcome, len(a.Events)))
	}
	m.with = nil
}

// setFlag changes a flag that the command line has left at its default.
func setFlag(t *testing.T, name, def, value string) {
	t.Helper()
	f := flag.Lookup(name)
	if f.Value.String() != def {
		return
	}
	if err := flag.Set(name, value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set(name, def) })
}
