// Package templates holds the text that outboxgen renders: SQL, prose, and the Go that is the same
// for every catalogue of a database engine.
package templates

import "embed"

// FS has a folder per database engine, and scaffold for what a team begins with. In an engine's
// migrations there is a folder per feature: NNNN_what.up.sql.tmpl and the way down, by version.
//
//go:embed */*.tmpl */migrations/*/*.tmpl
var FS embed.FS
