package lock_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/lock"
)

const text = `outboxgen: 1
service: shop/orders
go: {package: events, dir: internal/events}
database: {engine: postgresql, schema: messaging, prefix: shop_}
relay: {shards: 8, retention: 72h}
defaults: {topic: shop.orders}
types:
  Channel: {enum: [web, app], open: true}
  Line:
    fields:
      sku: {type: string, min_length: 1, pattern: "^<&>$"}
      labels: {"string": "string?"}
events:
  order.placed@1:
    doc: An order was accepted.
    key: order_id
    payload:
      order_id: uuid
      channel: Channel
      lines: {type: [Line], max_items: 9, doc: What was ordered.}
      email: {type: "string?", pii: true, json_name: mail}
consumers:
  inventory: {handles: [order.placed@1]}
`

func parse(t *testing.T, text string) *catalogue.Catalogue {
	t.Helper()
	c, list := catalogue.Parse("outbox.yaml", []byte(text))
	if c == nil {
		t.Fatal(list)
	}
	return c
}

func TestALockIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	l := lock.New("outbox.yaml", parse(t, text))
	l.SQL, l.Files = "hash", map[string]string{"a.go": "1"}
	l.Migrations = []lock.Migration{{
		Feature: catalogue.FeatureInbox, Version: 1, File: "db/1.sql", Format: "goose", Hash: "h",
		Statements: "s",
	}}
	data, err := l.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := lock.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if got.Language != catalogue.LanguageVersion || got.Catalogue != "outbox.yaml" ||
		!reflect.DeepEqual(got.Migrations, l.Migrations) {
		t.Errorf("got %+v, want %+v", got, l)
	}
	again, err := got.Encode()
	if err != nil || string(again) != string(data) {
		t.Errorf("got error %v and\n%s\nwant\n%s", err, again, data)
	}
	if !strings.Contains(string(data), `"pattern": "^<&>$"`) {
		t.Error("text is escaped beyond reading")
	}
}

func TestTheModelHoldsWhatBreaksReaders(t *testing.T) {
	t.Parallel()
	m := lock.Normalise(parse(t, text))
	one, nine := 1, 9
	want := lock.Model{
		Service:  "shop/orders",
		Go:       lock.Go{Package: "events", Dir: "internal/events"},
		Database: lock.Database{Engine: "postgresql", Schema: "messaging", Prefix: "shop_"},
		Relay:    lock.Relay{Shards: 8, Retention: "72h0m0s"},
		Types: map[string]lock.Type{
			"Channel": {GoName: "Channel", Fields: map[string]lock.Field{}, Open: true,
				Values: map[string]string{"web": "ChannelWeb", "app": "ChannelApp"}},
			"Line": {GoName: "Line", Fields: map[string]lock.Field{
				"sku": {Type: "string", JSONName: "sku", GoName: "Sku",
					Constraints: &lock.Constraints{MinLength: &one, Pattern: "^<&>$"}},
				"labels": {Type: "{string: string?}", JSONName: "labels", GoName: "Labels"},
			}},
		},
		Events: map[string]lock.Event{"order.placed@1": {
			GoName: "OrderPlacedV1", Topic: "shop.orders", Key: "order_id",
			Fields: map[string]lock.Field{
				"order_id": {Type: "uuid", JSONName: "order_id", GoName: "OrderID"},
				"channel":  {Type: "Channel", JSONName: "channel", GoName: "Channel"},
				"lines": {Type: "[Line]", JSONName: "lines", GoName: "Lines",
					Constraints: &lock.Constraints{MaxItems: &nine}},
				"email": {Type: "string?", JSONName: "mail", GoName: "Email", PII: true},
			},
		}},
		Consumers: map[string]lock.Consumer{"inventory": {
			GoName: "Inventory", Handles: []string{"order.placed@1"}, Emits: []string{},
		}},
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("got  %+v\nwant %+v", m, want)
	}
}

// A field of the catalogue that is neither listed here nor in the lock's model was forgotten.
func TestTheModelLeavesOutNothingByMistake(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of, in reflect.Type
		left   []string // what changes nobody's code or messages, or follows from the rest
	}{
		{reflect.TypeFor[catalogue.Catalogue](), reflect.TypeFor[lock.Model](),
			[]string{"File", "Migrations"}},
		{reflect.TypeFor[catalogue.Go](), reflect.TypeFor[lock.Go](), nil},
		{reflect.TypeFor[catalogue.Database](), reflect.TypeFor[lock.Database](),
			[]string{"SchemaPos", "PrefixPos", "Features"}},
		{reflect.TypeFor[catalogue.Relay](), reflect.TypeFor[lock.Relay](), nil},
		{reflect.TypeFor[catalogue.Type](), reflect.TypeFor[lock.Type](),
			[]string{"Name", "Enum", "Personal"}},
		{reflect.TypeFor[catalogue.Enum](), reflect.TypeFor[lock.Type](), nil},
		{reflect.TypeFor[catalogue.Event](), reflect.TypeFor[lock.Event](),
			[]string{"Name", "Version", "FileName", "Personal"}},
		{reflect.TypeFor[catalogue.Field](), reflect.TypeFor[lock.Field](), []string{"Name"}},
		{reflect.TypeFor[catalogue.Consumer](), reflect.TypeFor[lock.Consumer](),
			[]string{"Name", "FileName"}},
	} {
		for _, f := range reflect.VisibleFields(c.of) {
			_, found := c.in.FieldByName(f.Name)
			if !found && !slices.Contains(append(c.left, "Doc", "Pos"), f.Name) {
				t.Errorf("%s.%s is not in %s", c.of, f.Name, c.in)
			}
		}
	}
}

func TestDocumentationAndOrderAreNoChange(t *testing.T) {
	t.Parallel()
	encode := func(text string) string {
		data, err := lock.New("outbox.yaml", parse(t, text)).Encode()
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	changed := strings.NewReplacer(
		"doc: An order was accepted.", "doc: It was.",
		"[web, app]", "[app, web]",
		"      order_id: uuid\n      channel: Channel\n",
		"      channel: Channel\n      order_id: uuid\n",
	).Replace(text)
	if changed == text || encode(changed) != encode(text) {
		t.Error("the lock changed")
	}
	if encode(strings.Replace(text, "open: true", "open: false", 1)) == encode(text) {
		t.Error("the lock does not know that an enum was closed")
	}
}

func TestWhatIsNoLockIsRefused(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		"{":                              "not a lock",
		"{}":                             "it has no version",
		"[]":                             "not a lock",
		`{"lock": 3}`:                    "newer outboxgen",
		`{"lock": 1, "outboxgen": 9}`:    "newer outboxgen",
		"{\n<<<<<<< HEAD\n":              "merge conflict",
		"<<<<<<< HEAD\n{}\n":             "merge conflict",
		`{"lock": 1, "files": ["a.go"]}`: "not a lock",
	} {
		if _, err := lock.Parse([]byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q in it", data, err, want)
		}
	}
	if l, err := lock.Parse(nil); err != nil || l.Catalogue != "" {
		t.Errorf("no lock: got %+v and error %v", l, err)
	}
}

// The first format knew one migration, which made the tables of every feature.
func TestTheMigrationOfAnOldLockIsTheFirstOfEveryFeature(t *testing.T) {
	t.Parallel()
	l, err := lock.Parse([]byte(`{"lock": 1, "outboxgen": 1, "migrations": [{"file": "db/1.sql",
		"schema_version": 1, "format": "goose", "sha256": "h", "statements": "s"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var want []lock.Migration
	for _, f := range catalogue.Features() {
		want = append(want, lock.Migration{
			Feature: f, Version: 1, File: "db/1.sql", Format: "goose", Hash: "h", Statements: "s",
		})
	}
	if !slices.Equal(l.Migrations, want) {
		t.Errorf("got %+v, want %+v", l.Migrations, want)
	}
}
