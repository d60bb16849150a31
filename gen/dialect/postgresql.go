package dialect

import (
	"hash/fnv"
	"strconv"
	"strings"
)

const pgxPath = "github.com/jackc/pgx/v5"

// postgresql is that of PostgreSQL with the driver pgx. The server cuts longer names without an
// error; of the 63 bytes, a prefix leaves 32 to the names of tables, indexes and partitions.
var postgresql = Dialect{
	Engine:        "postgresql",
	Name:          "PostgreSQL",
	MaxIdentifier: 63,
	MaxPrefix:     31,
	Reserved:      postgresqlReserved,
	IsSystem: func(name string) bool {
		return strings.HasPrefix(name, "pg_") || name == "information_schema"
	},
	Quote:   doubling(`"`), // PostgreSQL manual, 4.1.1
	Literal: doubling(`'`), // without backslash escapes: PostgreSQL manual, 4.1.2.1
	LockKey: advisoryLock,
	Tx:      GoType{Path: pgxPath, Package: "pgx", Name: "Tx"},
	Batch:   GoType{Path: pgxPath, Package: "pgx", Name: "Batch", Pointer: true},
}

// doubling returns a function that puts a text between two quotes, and doubles those within it.
func doubling(quote string) func(string) string {
	return func(text string) string {
		return quote + strings.ReplaceAll(text, quote, quote+quote) + quote
	}
}

// advisoryLock makes the number of an advisory lock, which all applications of a database share.
func advisoryLock(name string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte("outboxgen/" + name))
	return strconv.FormatUint(h.Sum64()>>1, 10)
}

// postgresqlReserved are the reserved words of its manual, appendix C.
var postgresqlReserved = wordSet(`
	all analyse analyze and any array as asc asymmetric authorization binary both case cast check
	collate collation column concurrently constraint create cross current_catalog current_date
	current_role current_schema current_time current_timestamp current_user default deferrable desc
	distinct do else end except false fetch for foreign freeze from full grant group having ilike in
	initially inner intersect into is isnull join lateral leading left like limit localtime
	localtimestamp natural not notnull null offset on only or order outer overlaps placing primary
	references returning right select session_user similar some symmetric system_user table
	tablesample then to trailing true union unique user using variadic verbose when where window
	with`)

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(text) {
		set[word] = true
	}
	return set
}
