package catalogue

import (
	"slices"
	"strings"

	"github.com/outboxgen/outboxgen/gen/diag"
)

// loops reports circles of consumers in which each emits what the next handles. Every circle that a search finds is reported
// once, at the consumer of it that comes first in the file, and by one of the events that go round in it.
func (l *linter) loops() {
	s := loopSearch{linter: l, done: map[*consumerDraft]bool{}, reported: map[string]bool{}}
	for _, c := range l.consumers {
		s.visit(c)
	}
}

type loopSearch struct {
	*linter
	path     []loopStep
	done     map[*consumerDraft]bool
	reported map[string]bool // circles, by their consumers
}

type loopStep struct {
	consumer *consumerDraft
	emits    *Event
}

func (s *loopSearch) visit(c *consumerDraft) {
	if s.done[c] {
		return
	}
	for _, e := range c.Emits {
		s.path = append(s.path, loopStep{consumer: c, emits: e})
		for _, next := range s.consumers {
			if !slices.Contains(next.Handles, e) {
				continue
			}
			if start := slices.IndexFunc(s.path, func(p loopStep) bool { return p.consumer == next }); start >= 0 {
				s.report(s.path[start:])
			} else {
				s.visit(next)
			}
		}
		s.path = s.path[:len(s.path)-1]
	}
	s.done[c] = true
}

func (s *loopSearch) report(circle []loopStep) {
	var names, steps []string
	for _, p := range circle {
		names = append(names, p.consumer.Name)
		steps = append(steps, p.consumer.Name+" emits "+p.emits.TypeName())
	}
	id := strings.Join(names, " ")
	if s.reported[id] {
		return
	}
	s.reported[id] = true
	first := circle[0].consumer
	message := strings.Join(steps, ", ") + ", which " + first.Name + " handles"
	d := diag.New(diag.LintConsumerLoop, first.Pos, "events go round in a circle: %s", message)
	s.list.Add(d.WithHelp("make sure that a handler comes to an end of it, or break the circle"))
}
