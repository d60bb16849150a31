// Package db has the shop's SQL: its migrations for goose, with the generated ones among them, and
// the queries that sqlc compiles.
package db

import (
	"embed"
	"io/fs"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrations returns the directory of migrations.
func Migrations() fs.FS {
	migrations, err := fs.Sub(files, "migrations")
	if err != nil {
		panic(err) // the name is valid
	}
	return migrations
}
