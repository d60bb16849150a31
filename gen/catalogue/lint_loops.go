package catalogue

import (
	"fmt"

	"github.com/outboxgen/outboxgen/gen/diag"
)

// loops reports circles of consumers in which each emits what the next one handles. It reports one
// circle for each group of consumers that cause one another's events, at the one that comes first
// in the file.
func (l *linter) loops() {
	nodes := map[*Event]int{} // consumers are numbered first, then events
	for i, e := range l.eventDrafts {
		nodes[e.Event] = len(l.consumerDrafts) + i
	}
	var arrows []arrow[*Event]
	for i, c := range l.consumerDrafts {
		for _, e := range c.Emits {
			arrows = append(arrows, arrow[*Event]{from: i, to: nodes[e], why: e})
		}
		for _, e := range c.Handles {
			arrows = append(arrows, arrow[*Event]{from: nodes[e], to: i})
		}
	}
	for _, circle := range circles(len(l.consumerDrafts)+len(l.eventDrafts), arrows) {
		l.loop(circle)
	}
}

func (l *linter) loop(circle []arrow[*Event]) {
	first := l.consumerDrafts[circle[0].from]
	var steps []string
	for _, a := range circle {
		if a.why != nil {
			steps = append(steps, l.consumerDrafts[a.from].Name+" emits "+a.why.TypeName())
		}
	}
	message := fmt.Sprintf("%s, which %s handles", listed(steps, ", "), first.Name)
	d := diag.New(diag.LintConsumerLoop, first.Pos, "events go round in a circle: %s", message)
	l.list.Add(d.WithHelp("make sure that one of the handlers stops emitting, or break the circle"))
}
