package catalogue_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/diag"
)

const head = `outboxgen: 1
service: shop/orders
go: {package: events, dir: internal/events}
database: {engine: postgresql}
defaults: {topic: shop.orders}
`

// ofRule returns the messages of a rule, and how many other diagnostics there are.
func ofRule(yaml, rule string) (messages []string, others int) {
	_, list := catalogue.Parse("outbox.yaml", []byte(yaml))
	for _, d := range list {
		if d.Rule == rule {
			messages = append(messages, d.Message)
		} else {
			others++
		}
	}
	return messages, others
}

// names returns n numbered names, joined for a list of YAML.
func names(format string, n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(format, i))
	}
	return strings.Join(all, ", ")
}

func TestConsumersThatAllCauseOneAnotherGetOneWarning(t *testing.T) {
	t.Parallel()
	const n = 60
	yaml, consumers := head+"events:\n", "consumers:\n"
	for i := range n {
		yaml += fmt.Sprintf("  order.placed_%d@1: {doc: An order., payload: {}}\n", i)
		consumers += fmt.Sprintf("  c%d: {handles: [order.placed_%d@1], emits: [%s]}\n", i, i,
			names("order.placed_%d@1", n))
	}
	got, others := ofRule(yaml+consumers, diag.LintConsumerLoop)
	want := "events go round in a circle: c0 emits order.placed_0@1, which c0 handles"
	if len(got) != 1 || got[0] != want || others != 0 {
		t.Errorf("got %q and %d others, want only %q", got, others, want)
	}
}

func TestALongCircleIsCutShort(t *testing.T) {
	t.Parallel()
	const n = 500
	yaml, consumers := head+"events:\n", "consumers:\n"
	for i := range n {
		yaml += fmt.Sprintf("  order.placed_%d@1: {doc: An order., payload: {}}\n", i)
		consumers += fmt.Sprintf(
			"  c%d: {handles: [order.placed_%d@1], emits: [order.placed_%d@1]}\n", i, i, (i+1)%n,
		)
	}
	got, _ := ofRule(yaml+consumers, diag.LintConsumerLoop)
	if len(got) != 1 || len(got[0]) > 500 ||
		!strings.Contains(got[0], "…, c499 emits order.placed_0@1, which c0 handles") {
		t.Errorf("got %q", got)
	}
}

func TestTypesThatAllContainOneAnotherGetOneError(t *testing.T) {
	t.Parallel()
	const n = 60
	yaml := head + "types:\n"
	for i := range n {
		yaml += fmt.Sprintf("  T%d: {fields: {%s}}\n", i, names("f%[1]d: T%[1]d", n))
	}
	if got, others := ofRule(yaml, diag.TypeRecursive); len(got) != 1 || others != 0 {
		t.Errorf("got %q and %d others, want one", got, others)
	}
}

// A message about one of many does not list them all.
func TestMessagesListAFewOfMany(t *testing.T) {
	t.Parallel()
	yaml := head + "events:\n  thing.seen@1: {doc: A thing., key: colour, payload: {" +
		names("f%d: string", 500) + "}}\n"
	for i := range 500 {
		yaml += fmt.Sprintf("  order.placed@%d: {doc: An order., payload: {}}\n", i+1)
	}
	yaml += "consumers: {a: {handles: [order.placed@900, order.placed]}}\n"
	_, list := catalogue.Parse("outbox.yaml", []byte(yaml))
	if len(list) != 3 {
		t.Errorf("got %d diagnostics, want 3", len(list))
	}
	for _, d := range list {
		if len(d.Help) > 300 || !strings.Contains(d.Help, "…") {
			t.Errorf("got help %q", d.Help)
		}
	}
}

// What is shown to people begins with errors, however many hints there are.
func TestHintsPushOutNoError(t *testing.T) {
	t.Parallel()
	var list diag.List
	for i := range 1000 {
		list.Add(diag.New(diag.LintEventUnhandled,
			diag.Pos{File: "outbox.yaml", Line: i + 1, Column: 1}, "nobody"))
	}
	list.Add(diag.New(diag.EventTopic, diag.Pos{File: "outbox.yaml", Line: 2000, Column: 1},
		"no topic"))
	var b strings.Builder
	if err := diag.WriteText(&b, list, nil); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got, "no topic") ||
		!strings.Contains(got, "and 951 more: 951 infos") {
		t.Errorf("got %s", got)
	}
}
