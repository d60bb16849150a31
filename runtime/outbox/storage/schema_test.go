package storage

import (
	"errors"
	"strings"
	"testing"
)

func TestASchemaIsComparedWithTheDatabases(t *testing.T) {
	t.Parallel()
	schema := Schema{
		Migrations: "db/migrations", Features: []FeatureVersion{{"outbox", 3}, {"inbox", 1}},
	}
	inbox := SchemaVersion{"inbox", 1, 1}
	for _, test := range []struct {
		name    string
		found   []SchemaVersion
		missing bool     // a migration
		say     []string // nothing if the database will do
	}{
		{"the same", []SchemaVersion{{"outbox", 3, 1}, inbox}, false, nil},
		{"newer, and it serves this version",
			[]SchemaVersion{inbox, {"outbox", 7, 3}, {"jobs", 9, 9}}, false, nil},
		{"one step behind", []SchemaVersion{{"outbox", 2, 1}, inbox}, true, []string{
			"version 2", "needs version 3",
			"the migration …_outboxgen_outbox_3.sql of db/migrations",
		}},
		{"two steps behind", []SchemaVersion{{"outbox", 1, 1}, inbox}, true, []string{
			"version 1", "needs version 3",
			"from …_outboxgen_outbox_2.sql to …_outboxgen_outbox_3.sql",
		}},
		{"too new", []SchemaVersion{{"outbox", 5, 4}, inbox}, false, []string{
			"have version 5", "version 4 or newer", "code is of version 3",
			"generated for version 5",
		}},
		{"without one feature", []SchemaVersion{{"outbox", 3, 1}}, true, []string{
			`tables of "inbox" do not exist`, "…_outboxgen_inbox_1.sql",
		}},
		{"without any", nil, true, []string{
			`tables of "outbox" do not exist`,
			"db/migrations, from …_outboxgen_outbox_1.sql",
		}},
	} {
		err := schema.Check(test.found)
		if (err != nil) != (test.say != nil) || errors.Is(err, ErrUnusable) != (err != nil) ||
			errors.Is(err, ErrMigrationMissing) != test.missing {
			t.Errorf("%s: got error %v", test.name, err)
		}
		for _, want := range test.say {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %q, want %q in it", test.name, err, want)
			}
		}
	}
	schema.Migrations = ""
	if err := schema.Check(nil); !strings.Contains(err.Error(), "schema.sql") {
		t.Errorf("without migrations: got %v", err)
	}
}
