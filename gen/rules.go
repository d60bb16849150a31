package gen

import (
	"slices"

	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/migrate"
)

// The rules of what is on disk beside the catalogue.
const (
	RuleSQL    = "SQL_COMPILE"
	RuleStale  = "OUTPUT_STALE"
	RuleOrphan = "OUTPUT_ORPHAN"
)

const categoryOutput diag.Category = "output" // what was generated before

var rules = []diag.Rule{
	{ID: migrate.RuleImmutable, Category: categoryOutput, Purpose: "a migration is not edited once it is generated"},
	{ID: migrate.RuleTables, Category: categoryOutput, Purpose: "tables keep the names that a migration gave them"},
	{ID: migrate.RuleNeeded, Category: categoryOutput, Purpose: "tables change through a migration only"},
	{ID: RuleSQL, Category: categoryOutput, Purpose: "sqlc compiles the generated SQL"},
	{ID: RuleStale, Category: categoryOutput, Purpose: "generated files are what the catalogue generates (check)"},
	{ID: RuleOrphan, Category: categoryOutput, Severity: diag.Warning, Purpose: "a file that says it is generated, but that nothing generates"},
}

// Rules returns every rule that can be reported, by category.
func Rules() []diag.Rule { return slices.Concat(diag.Rules(), rules) }
