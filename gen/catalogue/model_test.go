package catalogue_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/diag"
)

func parseWhole(t *testing.T) *catalogue.Catalogue {
	t.Helper()
	data, err := os.ReadFile("testdata/whole.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, list := catalogue.Parse("whole.yaml", data)
	if c == nil {
		t.Fatal(list)
	}
	return c
}

func TestTheModelHoldsTheSettings(t *testing.T) {
	t.Parallel()
	got := *parseWhole(t)
	got.Types, got.Events, got.Consumers = nil, nil, nil
	want := catalogue.Catalogue{
		File: "whole.yaml", Service: "shop/orders",
		Go: catalogue.Go{
			Package: "events", Dir: "internal/events",
			Pos: diag.Pos{File: "whole.yaml", Line: 7, Column: 8, End: 23},
		},
		Database: catalogue.Database{
			Engine: "postgresql", Schema: "messaging", Features: catalogue.Features(),
			Pos:       diag.Pos{File: "whole.yaml", Line: 9, Column: 1, End: 9},
			SchemaPos: diag.Pos{File: "whole.yaml", Line: 11, Column: 11, End: 20},
			PrefixPos: diag.Pos{File: "whole.yaml", Line: 12, Column: 11, End: 13},
		},
		Migrations: catalogue.Migrations{Dir: "db/migrations", Format: "goose",
			Pos: diag.Pos{File: "whole.yaml", Line: 14, Column: 1, End: 11}},
		Relay: catalogue.Relay{Shards: 64, Retention: 72 * time.Hour},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings differ (-want +got):\n%s", diff)
	}
}

func TestTheModelDefaults(t *testing.T) {
	t.Parallel()
	c, list := catalogue.Parse("outbox.yaml", []byte(preamble))
	if c == nil {
		t.Fatal(list)
	}
	if c.Relay != (catalogue.Relay{Shards: 64}) || c.Migrations != (catalogue.Migrations{}) ||
		c.Database.Schema != "" || c.Database.Prefix != "" {
		t.Errorf("got %+v", c)
	}
}

func TestTheModelHoldsTypesEventsAndConsumers(t *testing.T) {
	t.Parallel()
	c := parseWhole(t)
	var b strings.Builder
	for _, x := range c.Types {
		fmt.Fprintf(&b, "%s %q line %d\n", x.GoName, x.Doc, x.Pos.Line)
		if x.Enum != nil {
			fmt.Fprintf(&b, "  open %v: %s=%s\n", x.Enum.Open, x.Enum.Values[0].GoName,
				x.Enum.Values[0].Value)
		}
	}
	for _, e := range c.Events[:2] {
		fmt.Fprintf(&b, "%s %s %s %s", e.TypeName(), e.GoName, e.FileName, e.Topic)
		for _, f := range e.Key {
			fmt.Fprintf(&b, " %s", f.GoName)
		}
		fmt.Fprintf(&b, " %q\n", e.Deprecated)
	}
	for _, f := range c.Events[1].Fields {
		if f.Name == "priority" || f.Name == "order_ids" {
			fmt.Fprintf(&b, "  %s %s %s %q %q %v\n", f.Name, f.GoName, f.JSONName, f.Doc,
				f.Deprecated, f.Type.Optional)
		}
	}
	for _, x := range c.Consumers {
		fmt.Fprintf(&b, "%s %s %s %d %d\n", x.Name, x.GoName, x.FileName, len(x.Handles),
			len(x.Emits))
	}
	want := `Money "An amount in the currency's smallest unit." line 26
Channel "" line 31
  open true: ChannelWeb=web
OrderLine "" line 34
Place "" line 40
order.placed@1 OrderPlacedV1 order_placed_v1.gen.go shop.orders OrderID ""
order.cancelled@1 OrderCancelledV1 order_cancelled_v1.gen.go shop.orders.cancelled Place ID "use order.cancelled@2"
  order_ids OrderIDs order_ids "" "" false
  priority Rank prio "One is first." "use rank" true
inventory Inventory inventory_consumer.gen.go 3 1
audit Audit audit_consumer.gen.go 1 0
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("model differs (-want +got):\n%s", diff)
	}
}

func TestNamedTypesAreShared(t *testing.T) {
	t.Parallel()
	c := parseWhole(t)
	for _, f := range c.Events[0].Fields {
		if f.Name == "total" && f.Type.Named != c.Types[0] {
			t.Errorf("got %p, want the declared type %p", f.Type.Named, c.Types[0])
		}
	}
}

func TestConstraintsAreGoLiterals(t *testing.T) {
	t.Parallel()
	yaml := preamble + `events:
  order.placed@1:
    payload:
      a: {type: int64, min: -0, max: 9223372036854775807}
      b: {type: float64, min: -1.50, max: 1e3}
      c: {type: "string?", min_length: 0, max_length: 3, pattern: "^a$"}
      d: {type: {string: [string]}, min_items: 0, max_items: 2}
      e: {type: bytes, max_length: 16}
`
	c, list := catalogue.Parse("outbox.yaml", []byte(yaml))
	if c == nil {
		t.Fatal(list)
	}
	text := func(s string) *string { return &s }
	number := func(n int) *int { return &n }
	want := []catalogue.Constraints{
		{Min: text("0"), Max: text("9223372036854775807")},
		{Min: text("-1.50"), Max: text("1e3")},
		{MinLength: number(0), MaxLength: number(3), Pattern: "^a$"},
		{MinItems: number(0), MaxItems: number(2)},
		{MaxLength: number(16)},
	}
	var got []catalogue.Constraints
	for _, f := range c.Events[0].Fields {
		got = append(got, f.Constraints)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("constraints differ (-want +got):\n%s", diff)
	}
}

func TestLargestPrefixIsAccepted(t *testing.T) {
	t.Parallel()
	yaml := strings.Replace(preamble, "engine: postgresql",
		"engine: postgresql, prefix: "+strings.Repeat("a", 31), 1)
	if c, list := catalogue.Parse("outbox.yaml", []byte(yaml)); c == nil {
		t.Error(list)
	}
}

func TestParseOfAFileWithCRLFAndAByteOrderMark(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/whole.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, _ := catalogue.Parse("x.yaml", data)
	got, list := catalogue.Parse("x.yaml", []byte("\ufeff"+strings.ReplaceAll(string(data), "\n",
		"\r\n")))
	if diff := cmp.Diff(want, got); diff != "" || len(list) > 0 {
		t.Errorf("%v\nmodels differ (-LF +CRLF):\n%s", list, diff)
	}
}

// What holds personal data is decided once, for the emitters and for the rules alike.
func TestTheModelKnowsWhatIsPersonal(t *testing.T) {
	t.Parallel()
	c, list := catalogue.Parse("outbox.yaml", []byte(preamble+`types:
  Late: {fields: {basket: "{string: [Address?]}"}}
  Address: {fields: {street: {type: string, pii: true}, before: "Address?"}}
  Chain: {fields: {next: "Chain?", colour: Colour}}
  Colour: {enum: [red]}
events:
  own.told@1: {doc: d, payload: {email: {type: "string?", pii: true}}}
  nested.told@1: {doc: d, payload: {late: "Late?"}}
  nothing.told@1: {doc: d, payload: {chain: Chain}}
`))
	if c == nil {
		t.Fatal(list)
	}
	got := map[string]bool{}
	for _, x := range c.Types {
		got[x.Name] = x.Personal
	}
	for _, e := range c.Events {
		got[e.TypeName()] = e.Personal
	}
	want := map[string]bool{
		"Late": true, "Address": true, "Chain": false, "Colour": false,
		"own.told@1": true, "nested.told@1": true, "nothing.told@1": false,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is personal differs (-want +got):\n%s", diff)
	}
}
